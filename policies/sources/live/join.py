"""Compare a state with its account: missing, unmanaged and drifted resources.

Resources match by type and id, or by ARN. What an account could not report is neither missing nor drifted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from infra.errors import Problem, UserError
from infra.naming import TAG_PREFIX, gcp_labels
from infra.quantity import amount
from policies.resource import Resource, is_unknown, partly
from policies.sources.live.mapping import Each, One
from policies.sources.live.records import LiveAccount, LiveResource
from policies.sources.live.tables import tables

What = Literal["unmanaged", "missing", "drifted"]
_STACK_TAG = f"{TAG_PREFIX}:stack"
# Labels of Google Cloud allow other characters than tags.
_STACK_TAGS = (_STACK_TAG, *gcp_labels({_STACK_TAG: ""}))
# Autoscalers change sizes; a snapshot does not keep user data; the provider adds tags, and GKE taints.
_UNCOMPARED = (
    *("scalingConfig.desiredSize", "nodeCount", "userData", "tags", "tagsAll", "region"),
    "nodeConfig.taints",
)
_REDACTED = "(redacted)"


@dataclass(frozen=True)
class Difference:
    """Difference between a state and its account in a resource."""

    what: What
    resource: Resource
    message: str
    path: str = ""


@dataclass(frozen=True)
class Join:
    """An account joined with a state."""

    resources: Sequence[Resource]
    """Resources of the account; those in the state have its URN and the properties of its program."""
    differences: Sequence[Difference]
    imports: Sequence[Mapping[str, str]]
    """Unmanaged resources for `pulumi import --file`: type, name and id."""

    def import_file(self) -> str:
        """Content for `pulumi import --file` (pkg/cmd/pulumi/operations/import.go, CLI 3.259.0)."""
        return json.dumps({"resources": list(self.imports)}, indent=2) + "\n"


def joined(state: Sequence[Resource], account: LiveAccount) -> Join:
    """Join an account with a state. Raises UserError if they belong to different accounts."""
    _check_same_account(state, account)
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
        if managed is None and live.builtin:
            continue
        if managed is None:
            resources.append(own)
            if not live.made_by_service and (name := _stack(own)) and (not names or name in names):
                message = f"it is tagged as of {name}, and not in the state"
                differences.append(Difference("unmanaged", own, message))
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


def _check_same_account(state: Sequence[Resource], account: LiveAccount) -> None:
    own = f"{account.snapshot.cloud}:"
    known = {str(one.account) for one in state if one.kind.startswith(own) and one.account}
    if known and account.snapshot.account not in known:
        rule = f"is of account {', '.join(sorted(known))}, and the snapshot of {account.snapshot.account}"
        fix = "Take a snapshot of the account of the stack."
        raise UserError([Problem("--state", None, rule, fix, code="state-of-other-account")])


def _sort(kind: str) -> str:
    """A kind; without version for Kubernetes, which serves an object in several versions."""
    head, _, name = kind.rpartition(":")
    return f"{head.rpartition('/')[0]}:{name}" if kind.startswith("kubernetes:") else kind


def _stack(resource: Resource) -> str:
    """The stack in its tags; empty without one, and for unknown tags."""
    if is_unknown(resource.tags):
        return ""
    tags = resource.tags if isinstance(resource.tags, dict) else {}
    values = [value for name in _STACK_TAGS if not is_unknown(value := dict.get(tags, name)) and value]
    return str(values[0]) if values else ""


def _import_name(resource: Resource) -> str:
    """A name for the program, valid in a URN."""
    return resource.name.replace("::", "-").replace("/", "-").strip("-") or str(resource.id)


def _completed(live: LiveResource, managed: Resource) -> Resource:
    props = {name: live.resource.raw(name) for name in live.resource.props}
    props |= {name: managed.raw(name) for name in live.program_only}
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


def _missing(state: Sequence[Resource], met: set[str], account: LiveAccount) -> Iterator[Difference]:
    """Resources of the state that the account should report, and does not."""
    region, cloud = account.snapshot.region, account.snapshot.cloud
    reported = {kind.kind: kind for kind in tables(cloud).kinds}
    for one in state:
        kind = reported.get(one.kind)
        elsewhere = not kind or (not kind.regionless and one.region and one.region != region)
        if is_unknown(one.id):
            continue  # it was not created yet
        if one.urn not in met and not elsewhere and not account.coverage.refusal(one.kind):
            yield Difference("missing", one, "it is in the state, and not in the account")


def _drifts(managed: Resource, live: LiveResource) -> Iterator[Difference]:
    """Properties with another value in the account than in the program."""
    asked = dict(managed.asked or {})  # raw values, also unknown ones
    for name in sorted(live.shape.keys() & asked.keys()):
        wanted, found = _comparable(asked[name], live.shape[name]), live.resource.raw(name)
        for path, before, now in _differing(wanted, found, name):
            message = f"it is {_short(now)}, and the program asked for {_short(before)}"
            yield Difference("drifted", managed, message, path)


def _comparable(wanted: Any, how: Any) -> Any:
    """Inputs of a program, without properties that the tables do not read."""
    if isinstance(wanted, list):
        return [_comparable(one, how) for one in wanted]
    if not isinstance(wanted, dict) or not isinstance(how, Each | One):
        return wanted
    return {
        name: _comparable(dict.get(wanted, name), how.shape[name]) for name in wanted if name in how.shape
    }


def _differing(wanted: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, wanted, found) of each difference; unset inputs and unknown values are ignored."""
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
    """Return whether two values are equivalent.

    Ignored are the order of a list, a list of one item, JSON or a number as a string, empty against absent,
    and an id instead of the ARN that ends with it.
    """
    texts = isinstance(wanted, str) and isinstance(found, str)
    if texts and (_REDACTED in found or found.endswith((f"/{wanted}", f":{wanted}"))):
        return True
    return bool(_plain(wanted) == _plain(found))


def _plain(value: Any) -> Any:
    """Canonical form of equivalent values."""
    if value in (None, "", [], {}, False, 0):
        return None
    if isinstance(value, dict):
        return {key: one for key in sorted(value) if (one := _plain(value[key])) is not None}
    if isinstance(value, list):
        rows = sorted(map(_plain, value), key=repr)
        return rows[0] if len(rows) == 1 else rows
    return "true" if value is True else _read(value)


def _read(value: Any) -> Any:
    """Canonical form of a number, an amount or a string."""
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
