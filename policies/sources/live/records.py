"""From the answers of a cloud to the records that rules see."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.coverage import Coverage
from policies.resource import Resource, Unknown, partly
from policies.sources.convert import refuse_empty
from policies.sources.live import snapshot
from policies.sources.live.form import Kind, Look, RefusedError, Shape, View, shaped, views
from policies.sources.live.question import Answers, Item, Question, Refusal
from policies.sources.live.snapshot import Snapshot
from policies.sources.live.tables import Tables, tables

_PROGRAM = "only its program could say, and an account does not"
# Tags that services of AWS set themselves, which no program can have set (AWS Tagging, reserved prefix), and
# those by which EKS, GKE and controllers of Kubernetes mark what they make.
_RESERVED = "aws:"
_MADE_BY = (
    *("aws:autoscaling:", "aws:eks:", "aws:cloudformation:", "eks:", "karpenter.sh/", "ebs.csi.aws.com/"),
    *("kubernetes.io/created-for/", "elbv2.k8s.aws/", "goog-gke-", "goog-k8s-"),
)


@dataclass(frozen=True, eq=False)
class Live:
    """A resource of an account, and what only an account has of it."""

    resource: Resource
    imported: str
    """What `pulumi import` takes for it."""
    made_by_service: bool
    """Whether no program has it: a service or a controller made it for somebody, or it is told besides."""
    shape: Shape
    """What the tables read of it: of anything else, silence means nothing."""
    untold: frozenset[str]
    """Those that only a program has."""
    spared: bool = False
    """Whether it is judged only where a program manages it."""


@dataclass(frozen=True)
class Account:
    """Everything that a snapshot tells."""

    snapshot: Snapshot
    found: tuple[Live, ...]
    coverage: Coverage

    @property
    def resources(self) -> list[Resource]:
        """As rules see them."""
        return [one.resource for one in self.found if not one.spared]


def account(heard: Snapshot) -> Account:
    """The resources of a snapshot, and of which kinds it could not tell."""
    known, look = tables(heard.cloud), Look(heard.account, heard.region, heard.answers)
    told = (_live(kind, view) for kind in known.kinds for view in views(kind, look))
    found = {one.resource.urn: one for one in told}  # two questions may bring the same
    return Account(heard, tuple(found.values()), _coverage(known, heard.answers))


def read(path: Path, *, allow_empty: bool = False) -> Account:
    """What a snapshot in a file tells. Raises UserError for any other file, and for an empty one."""
    found = account(snapshot.read(path))
    if not found.coverage.refused:
        refuse_empty(found.resources, str(path), allow_empty)
    return found


def _live(kind: Kind, view: View) -> Live:
    props = shaped(view, kind.props)
    if kind.arn and "arn" not in props:
        props = partly({**props, "arn": view.filled(kind.arn)})
    untold = {name: Unknown(name, _PROGRAM) for name in kind.untold}
    tags = _tags(view, kind)
    region = "" if kind.everywhere else view.at("region")
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
        props=partly({**props, **untold}),
        tags=_ours(tags),
        protect=Unknown("protect", _PROGRAM),
        chosen=_chosen(kind, view, props),
        origin="live",
    )
    made = isinstance(tags, dict) and any(key.startswith(_MADE_BY) for key in tags)
    made = made or bool(kind.made and kind.made(view))
    imported = view.filled(kind.imported or kind.id)
    spared = bool(kind.spared and kind.spared(view))
    return Live(resource, imported, made, kind.props, frozenset(kind.untold), spared)


def _tags(view: View, kind: Kind) -> dict[str, Any] | Refusal:
    """All tags, in any of the forms that services have."""
    if not kind.tags:
        return {}
    try:
        found = view.at(kind.tags)
    except RefusedError as error:
        return error.args[0]  # type: ignore[no-any-return]
    if isinstance(found, dict):
        return found
    return {
        str(one.get("Key") or one.get("key") or one.get("TagKey")): next(
            (one[name] for name in ("Value", "value", "TagValue") if name in one), ""
        )
        for one in found or ()
    }


def _ours(tags: dict[str, Any] | Refusal) -> Any:
    if isinstance(tags, Refusal):
        return Unknown("tags", f"are not known: {tags}")
    return {key: value for key, value in tags.items() if not key.startswith(_RESERVED)}


def _chosen(kind: Kind, view: View, props: Mapping[str, Any]) -> dict[str, bool]:
    """Whether the key in a property is one that somebody made, where the account tells of the key."""
    made = {}
    for name in kind.keys:
        value = dict.get(props, name) if isinstance(props, dict) else None
        if isinstance(value, str) and value.startswith("projects/"):
            made[name] = True  # Google names no key of its own: what is named, somebody chose
        elif isinstance(value, str):
            field = "Arn" if value.startswith("arn:") else "KeyId"
            key = view.look.first("kms.DescribeKey", field, value)
            if key is not None:
                made[name] = key.get("KeyManager") == "CUSTOMER"
    return made


def _coverage(known: Tables, answers: Mapping[str, Answers]) -> Coverage:
    refused: dict[str, dict[str, str]] = {}
    for kind in known.kinds:
        for refusal in _refusals(known.questions[kind.question], known, answers):
            of = _view_of(refusal).filled(kind.owner) if kind.owner and refusal.asked else ""
            refused.setdefault(kind.kind, {})[of] = f"{kind.kind} could not be read: {refusal}"
    told = frozenset(kind.kind for kind in known.kinds) | known.elsewhere
    return Coverage(refused, known.beyond, told)


def _refusals(question: Question, known: Tables, answers: Mapping[str, Answers]) -> Iterator[Refusal]:
    """Of a question, and of those whose items it is asked for."""
    asked: Question | None = question
    while asked is not None:
        found = answers.get(asked.name)
        if found is None:
            yield Refusal("NotAsked", "", asked.name)
        else:
            yield from found.refusals
        asked = known.questions.get(asked.of)


def _view_of(refusal: Refusal) -> View:
    """A refusal as tables read it, for the id of what it is about."""
    return View(Item({}, refusal.asked), Look("", "", {}))
