"""Convert a snapshot to the records that rules see."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.coverage import Coverage
from policies.resource import Resource, UnknownValue, partly
from policies.sources.convert import check_not_empty
from policies.sources.live import snapshot
from policies.sources.live.mapping import AnswerIndex, LiveKind, QueryRefusedError, Shape, View, shaped, views
from policies.sources.live.queries import AnswerItem, Answers, ApiQuery, ApiRefusal
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import CloudTables, tables

_PROGRAM = "is defined by its program, and an account does not report it"
# Tags that only services of AWS can set (AWS Tagging, reserved prefix), and tags of resources that EKS, GKE
# and controllers of Kubernetes create.
_RESERVED = "aws:"
_MADE_BY = (
    *("aws:autoscaling:", "aws:eks:", "aws:cloudformation:", "eks:", "karpenter.sh/", "ebs.csi.aws.com/"),
    *("kubernetes.io/created-for/", "elbv2.k8s.aws/", "goog-gke-", "goog-k8s-"),
)


@dataclass(frozen=True, eq=False)
class LiveResource:
    """A resource of an account, with data that only an account has."""

    resource: Resource
    imported: str
    """Id for `pulumi import`."""
    made_by_service: bool
    """Created by a service or a controller, so that no program manages it."""
    shape: Shape
    """Properties that the tables read: the absence of others means nothing."""
    program_only: frozenset[str]
    """Properties that only a program has."""
    builtin: bool = False
    """Part of the cloud itself: judged only if a program manages it."""


@dataclass(frozen=True)
class LiveAccount:
    """Resources and coverage of a snapshot."""

    snapshot: Snapshot
    found: tuple[LiveResource, ...]
    coverage: Coverage

    @property
    def resources(self) -> list[Resource]:
        """The resources to judge."""
        return [one.resource for one in self.found if not one.builtin]


def account(source: Snapshot) -> LiveAccount:
    """The resources of a snapshot, and its coverage."""
    known, look = tables(source.cloud), AnswerIndex(source.account, source.region, source.answers)
    reported = (_live(kind, view) for kind in known.kinds for view in views(kind, look))
    found = {one.resource.urn: one for one in reported}  # two queries may return the same
    return LiveAccount(source, tuple(found.values()), _coverage(known, source.answers))


def read(path: Path, *, allow_empty: bool = False) -> LiveAccount:
    """Read a snapshot file. Raises UserError for any other file, and for one without resources."""
    found = account(snapshot.read(path))
    if not found.coverage.refused:
        check_not_empty(found.resources, str(path), allow_empty)
    return found


def _live(kind: LiveKind, view: View) -> LiveResource:
    props = shaped(view, kind.props)
    if kind.arn and "arn" not in props:
        props = partly({**props, "arn": view.filled(kind.arn)})
    program_only = {name: UnknownValue(name, _PROGRAM) for name in kind.program_only}
    tags = _tags(view, kind)
    region = "" if kind.regionless else view.at("region")
    if region:
        props = partly({**props, "region": region})
    named = view.filled(kind.id)
    resource = Resource(
        kind=kind.kind,
        urn=f"live:{view.at('account')}:{region}:{kind.kind}:{named}",
        name=view.filled(kind.name) if kind.name else named,
        id=named,
        region=region,
        account=view.at("account"),
        props=partly({**props, **program_only}),
        tags=_ours(tags),
        protect=UnknownValue("protect", _PROGRAM),
        chosen=_chosen(kind, view, props),
        origin="live",
    )
    made = isinstance(tags, dict) and any(key.startswith(_MADE_BY) for key in tags)
    made = made or bool(kind.made and kind.made(view))
    imported = view.filled(kind.imported or kind.id)
    builtin = bool(kind.builtin and kind.builtin(view))
    return LiveResource(resource, imported, made, kind.props, frozenset(kind.program_only), builtin)


def _tags(view: View, kind: LiveKind) -> dict[str, Any] | ApiRefusal:
    if not kind.tags:
        return {}
    try:
        found = view.at(kind.tags)
    except QueryRefusedError as error:
        return error.args[0]  # type: ignore[no-any-return]
    if isinstance(found, dict):
        return found
    return {
        str(one.get("Key") or one.get("key") or one.get("TagKey")): next(
            (one[name] for name in ("Value", "value", "TagValue") if name in one), ""
        )
        for one in found or ()
    }


def _ours(tags: dict[str, Any] | ApiRefusal) -> Any:
    if isinstance(tags, ApiRefusal):
        return UnknownValue("tags", f"are not known: {tags}")
    return {key: value for key, value in tags.items() if not key.startswith(_RESERVED)}


def _chosen(kind: LiveKind, view: View, props: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether the key in a property is customer-managed, if the account reports the key."""
    made = {}
    for name in kind.keys:
        value = dict.get(props, name) if isinstance(props, dict) else None
        if isinstance(value, str) and value.startswith("projects/"):
            made[name] = True  # Google reports only customer-managed keys
        elif isinstance(value, str):
            field = "Arn" if value.startswith("arn:") else "KeyId"
            key = view.look.first("kms.DescribeKey", field, value)
            if key is not None:
                made[name] = key.get("KeyManager") == "CUSTOMER"
    return made


def _coverage(known: CloudTables, answers: Mapping[str, Answers]) -> Coverage:
    refused: dict[str, dict[str, str]] = {}
    for kind in known.kinds:
        for refusal in _refusals(known.queries[kind.query], known, answers):
            of = _view_of(refusal).filled(kind.owner) if kind.owner and refusal.asked else ""
            refused.setdefault(kind.kind, {})[of] = f"{kind.kind} could not be read: {refusal}"
    reported = frozenset(kind.kind for kind in known.kinds) | known.absent
    return Coverage(refused, known.unreported, reported)


def _refusals(query: ApiQuery, known: CloudTables, answers: Mapping[str, Answers]) -> Iterator[ApiRefusal]:
    """Errors of a query, and of the queries whose items it needs."""
    asked: ApiQuery | None = query
    while asked is not None:
        found = answers.get(asked.name)
        if found is None:
            yield ApiRefusal("NotAsked", "", asked.name)
        else:
            yield from found.refusals
        asked = known.queries.get(asked.of)


def _view_of(refusal: ApiRefusal) -> View:
    return View(AnswerItem({}, refusal.asked), AnswerIndex("", "", {}))
