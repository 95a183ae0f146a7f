"""A state against an account: what is in one only, and what is no longer as its program asked for it.

Found again by type and id, or by ARN. What an account could not tell is neither missing nor drifted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from infra.errors import Problem, UserError
from infra.naming import TAG_PREFIX, gcp_labels
from infra.quantity import amount
from policies.resource import Resource, is_unknown, partly
from policies.sources.live.form import Each, One
from policies.sources.live.records import Account, Live
from policies.sources.live.tables import tables

What = Literal["unmanaged", "missing", "drifted"]
_STACK_TAG = f"{TAG_PREFIX}:stack"
# A label of Google Cloud has other characters than a tag.
_STACK_TAGS = (_STACK_TAG, *gcp_labels({_STACK_TAG: ""}))
# Autoscalers move sizes on; a snapshot does not keep user data; the provider adds tags, and GKE taints.
_UNCOMPARED = (
    *("scalingConfig.desiredSize", "nodeCount", "userData", "tags", "tagsAll", "region"),
    "nodeConfig.taints",
)
_REDACTED = "(redacted)"


@dataclass(frozen=True)
class Difference:
    """One resource in which a state and its account differ."""

    what: What
    resource: Resource
    message: str
    path: str = ""


@dataclass(frozen=True)
class Join:
    """An account as a state knows it."""

    resources: Sequence[Resource]
    """Those of the account; what is in the state, too, has its URN, and what only a program knows."""
    differences: Sequence[Difference]
    imports: Sequence[Mapping[str, str]]
    """What is unmanaged, as `pulumi import --file` takes it: type, name and id."""

    def import_file(self) -> str:
        """For `pulumi import --file` (importFile in pkg/cmd/pulumi/operations/import.go, CLI 3.259.0)."""
        return json.dumps({"resources": list(self.imports)}, indent=2) + "\n"


def joined(state: Sequence[Resource], account: Account) -> Join:
    """The account with what the state knows of it. Raises UserError where they are not of one account."""
    _refuse_other_account(state, account)
    known = {(_sort(one.kind), str(one.id)): one for one in state if not is_unknown(one.id)}
    arns = {(one.kind, arn): one for one in state if (arn := one.raw("arn")) and isinstance(arn, str)}
    names = {str(value) for one in state if (value := _stack(one))}
    resources: list[Resource] = []
    differences: list[Difference] = []
    imports: list[Mapping[str, str]] = []
    met: set[str] = set()
    for live in account.found:
        own = live.resource
        managed = known.get((_sort(own.kind), str(own.id))) or arns.get((own.kind, str(own.raw("arn"))))
        if managed is None and live.spared:
            continue
        if managed is None:
            resources.append(own)
            if not live.made_by_service and (name := _stack(own)) and (not names or name in names):
                said = f"it is tagged as of {name}, and not in the state"
                differences.append(Difference("unmanaged", own, said))
                imports.append({"type": own.kind, "name": _import_name(own), "id": live.imported})
            continue
        met.add(managed.urn)
        resources.append(_completed(live, managed))
        if managed.kind == own.kind:
            differences += _drifts(managed, live)
    differences += _missing(state, met, account)
    order = ("missing", "drifted", "unmanaged")
    differences.sort(key=lambda one: (order.index(one.what), one.resource.urn, one.path))
    return Join(resources, differences, imports)


def _refuse_other_account(state: Sequence[Resource], account: Account) -> None:
    own = f"{account.snapshot.cloud}:"
    told = {str(one.account) for one in state if one.kind.startswith(own) and one.account}
    if told and account.snapshot.account not in told:
        said = f"is of account {', '.join(sorted(told))}, and the answers are of {account.snapshot.account}"
        raise UserError([Problem("--state", None, said, "Take the snapshot of the account of the stack.")])


def _sort(kind: str) -> str:
    """A kind; without its version where it is one of Kubernetes, which serves an object in several."""
    head, _, name = kind.rpartition(":")
    return f"{head.rpartition('/')[0]}:{name}" if kind.startswith("kubernetes:") else kind


def _stack(resource: Resource) -> str:
    """The stack that its tags name; empty where they name none, or are not known."""
    if is_unknown(resource.tags):
        return ""
    tags = resource.tags if isinstance(resource.tags, dict) else {}
    values = [value for name in _STACK_TAGS if not is_unknown(value := dict.get(tags, name)) and value]
    return str(values[0]) if values else ""


def _import_name(resource: Resource) -> str:
    """A name for the program: without what a URN cannot hold, and of this resource alone."""
    return resource.name.replace("::", "-").replace("/", "-").strip("-") or str(resource.id)


def _completed(live: Live, managed: Resource) -> Resource:
    """The live resource with what only its program knows."""
    props = {name: live.resource.raw(name) for name in live.resource.props}
    props |= {name: managed.raw(name) for name in live.untold}
    return replace(
        live.resource,
        urn=managed.urn,
        name=managed.name,
        props=partly({name: value for name, value in props.items() if value is not None}),
        asked=managed.asked,
        parent=managed.parent,
        dependencies=managed.dependencies,
        references=managed.references,
        protect=managed.protect,
        init_errors=managed.init_errors,
        modified=managed.modified,
        plugin=managed.plugin,
    )


def _missing(state: Sequence[Resource], met: set[str], account: Account) -> Iterator[Difference]:
    """What the account would have told, and did not."""
    heard = account.snapshot
    told = {kind.kind: kind for kind in tables(heard.cloud).kinds}
    for one in state:
        kind = told.get(one.kind)
        elsewhere = not kind or (not kind.everywhere and one.region and one.region != heard.region)
        if is_unknown(one.id):
            continue  # it was not made, as far as the state knows
        if one.urn not in met and not elsewhere and not account.coverage.refusal(one.kind):
            yield Difference("missing", one, "it is in the state, and not in the account")


def _drifts(managed: Resource, live: Live) -> Iterator[Difference]:
    """Properties that the program asked for, and that the account has otherwise."""
    asked = dict(managed.asked or {})  # also of what is partly known: values, as they are
    for name in sorted(live.shape.keys() & asked.keys()):
        wanted, found = _told(asked[name], live.shape[name]), live.resource.raw(name)
        for path, before, now in _differing(wanted, found, name):
            message = f"it is {_short(now)}, and the program asked for {_short(before)}"
            yield Difference("drifted", managed, message, path)


def _told(wanted: Any, how: Any) -> Any:
    """What a program asked for, without what tables do not read of it."""
    if isinstance(wanted, list):
        return [_told(one, how) for one in wanted]
    if not isinstance(wanted, dict) or not isinstance(how, Each | One):
        return wanted
    return {name: _told(dict.get(wanted, name), how.shape[name]) for name in wanted if name in how.shape}


def _differing(wanted: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, wanted, found) of each difference; what nobody asked for, or nobody knows, is none."""
    if path in _UNCOMPARED or is_unknown(wanted) or is_unknown(found):
        return
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in dict.keys(wanted):
            if not name.startswith("__"):
                yield from _differing(dict.get(wanted, name), dict.get(found, name), f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        if not _same(wanted, found):
            for index, (before, now) in enumerate(zip(wanted, found, strict=True)):
                yield from _differing(before, now, f"{path}[{index}]")
    elif not _same(wanted, found):
        yield path, wanted, found


def _same(wanted: Any, found: Any) -> bool:
    """Whether two values mean the same.

    Of no matter are the order of a list, a list of one, JSON or a number as a text, empty or absent, and an
    id in place of the ARN that ends in it.
    """
    texts = isinstance(wanted, str) and isinstance(found, str)
    if texts and (_REDACTED in found or found.endswith((f"/{wanted}", f":{wanted}"))):
        return True
    return bool(_plain(wanted) == _plain(found))


def _plain(value: Any) -> Any:
    """A value in the one form of all that mean the same."""
    if value in (None, "", [], {}, False, 0):
        return None
    if isinstance(value, dict):
        return {key: one for key in sorted(value) if (one := _plain(value[key])) is not None}
    if isinstance(value, list):
        rows = sorted(map(_plain, value), key=repr)
        return rows[0] if len(rows) == 1 else rows
    return "true" if value is True else _read(value)


def _read(value: Any) -> Any:
    """A number or an amount, or a text as what it says."""
    try:
        return f"{float(value):g}"
    except ValueError:
        pass
    number = amount(value)
    if number is not None:
        return f"{float(number):g}"
    try:
        return _plain(json.loads(value)) if value[:1] in "{[" else value
    except ValueError:
        return value


def _short(value: Any) -> str:
    shown = "not set" if value in (None, "", [], {}) else json.dumps(value, default=repr)
    return shown if len(shown) <= 80 else f"{shown[:80]}..."
