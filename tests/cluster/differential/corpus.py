"""The sequences that go to both: examples of rules, manifests of stacks, mutations, lives of objects."""

import copy
import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from google.protobuf import json_format

from infra.discovery import modules
from rehearsal.core.model import Properties
from rehearsal.kubernetes.cloud_kinds import brought
from rehearsal.kubernetes.diffs import diff
from rehearsal.kubernetes.kinds import HELM_RELEASE, parse
from rehearsal.kubernetes.rules.book import CONFIG_MAP, LIMIT_RANGE, NAMESPACE, SERVICE
from tests.cluster.differential.mutations import mutants
from tests.components.graph import Graph
from tests.rehearsal.kubernetes.rules.building import Example, but, named, spaced
from tests.rehearsal.kubernetes.rules.examples.custom import KUEUE
from tests.rehearsal.kubernetes.rules.examples.objects import WEB
from tests.stacks.composition.composed import Pair, composed
from tests.stacks.composition.variants import VARIANTS

Object = tuple[str, Properties]
TRAINER: Object = (
    HELM_RELEASE,
    {
        "chart": "oci://ghcr.io/kubeflow/charts/kubeflow-trainer",
        "name": "kubeflow-trainer",
        "namespace": "kubeflow-system",
    },
)
_RUNTIME = "kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime"
_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
# Objects of a namespace that decide what else is let in.
_DECIDING = (LIMIT_RANGE, _ACCOUNT)
# Of GKE alone, and of a chart whose source is not here: the API server would not know them.
_UNKNOWN = {crd.group for crd in brought({"enableMultiNetworking": True})} | {"monitoring.coreos.com"}
_OF_THE_TYPE = ("apiVersion", "kind")
# The variants with objects of other shapes than those of the shipped stacks; the rest have other values.
_VARIANTS: dict[Pair, tuple[str, ...]] = {
    ("medium", "aws"): (
        "no-shared-file-system", "no-rdma", "shared-queue", "claimed-devices", "load-balancer",
        "database-pauses",
    ),
    ("medium", "gcp"): (
        "shared-file-system", "queued", "tcpxo", "tcpx", "rdma-managed", "rdma-classic",
    ),
}  # fmt: skip
# How many mutants are created; one more is an update.
_MUTANTS_OF_AN_EXAMPLE, _MUTANTS_OF_A_MANIFEST = 2, 1


@dataclass(frozen=True)
class Step:
    """One request for one object: its type and inputs as a program gives them."""

    verb: Literal["create", "update", "delete"]
    token: str
    inputs: Properties


@dataclass(frozen=True)
class Sequence:
    """Requests in order. `world` is created first and must be accepted; what the steps get is compared."""

    name: str
    world: tuple[Object, ...]
    steps: tuple[Step, ...]


@functools.cache
def corpus() -> tuple[Sequence, ...]:
    """Every sequence, in the same order with the same mutations every time."""
    examples = [one for module in modules("tests.rehearsal.kubernetes.rules.examples")
                for one in module.EXAMPLES]  # fmt: skip
    found = [*_of_examples(examples), *_of_stacks(), *_lives()]
    assert len({one.name for one in found}) == len(found)
    return tuple(found)


def _of_examples(examples: list[Example]) -> Iterator[Sequence]:
    """Both objects of each rule, and mutations of the accepted one."""
    for example in examples:
        rule, token = example.rule, example.token
        if parse(token).group in _UNKNOWN:
            continue
        world = tuple(example.world)
        verb = "update" if any(_same(one, (token, example.base)) for one in world) else "create"
        for word, inputs in (("accepted", example.accepted), ("refused", example.refused)):
            name = f"{rule} {word}"
            there = verb == "update" and _same((token, inputs), (token, example.base))
            yield Sequence(name, world, (Step("update" if there else "create", token, inputs),))
        yield from _mutated(rule, world, (token, example.accepted), _MUTANTS_OF_AN_EXAMPLE)


def _of_stacks() -> Iterator[Sequence]:
    """The Kubernetes objects of every stack and of its variants, and mutations of them.

    Of those that differ in texts only, such as the claims of one team and another, the first. Not those of
    kinds that the control plane does not know.
    """
    seen: set[str] = set()
    for pair, names in _VARIANTS.items():
        for variant in ("", *names):
            objects = _objects(composed(pair, VARIANTS[pair][variant] if variant else None))
            for key, (token, inputs) in objects.items():
                shape = json.dumps([token, _shape(inputs)], sort_keys=True)
                if shape in seen or token == HELM_RELEASE or parse(token).group in _UNKNOWN:
                    continue
                seen.add(shape)
                name = f"{'-on-'.join(pair)} {variant} {key}".replace("  ", " ")
                world = _surroundings(objects, (token, inputs))
                yield Sequence(name, world, (Step("create", token, inputs),))
                # Of this kind the emulation knows the name only, and takes any fields.
                if token != _RUNTIME:
                    yield from _mutated(name, world, (token, inputs), _MUTANTS_OF_A_MANIFEST)


def _shape(value: Any) -> Any:
    """A value without its texts."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "" if isinstance(value, str) else value


def _objects(graph: Graph) -> dict[str, Object]:
    found = {}
    for key, request in graph.requests.items():
        if request.type.startswith("kubernetes:"):
            inputs = _whole(json_format.MessageToDict(request.object))
            # The type says these, and the provider sets them by it.
            found[key] = (request.type, {name: inputs[name] for name in inputs if name not in _OF_THE_TYPE})
    return found


def _whole(value: Any) -> Any:
    """A value as JSON has it: protobuf knows no whole numbers."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _surroundings(objects: Mapping[str, Object], one: Object) -> tuple[Object, ...]:
    """The namespace of an object and the objects that admission depends on."""
    own = one[1]["metadata"].get("namespace")
    found = [TRAINER if one[0] == _RUNTIME else KUEUE]
    for token, inputs in objects.values():
        metadata = inputs.get("metadata") or {}
        deciding = token in _DECIDING and metadata.get("namespace") == own
        if (token == NAMESPACE and metadata["name"] == own) or (deciding and token != one[0]):
            found.append((token, inputs))
    return tuple(sorted(found, key=lambda row: row[0] != NAMESPACE))


def _mutated(name: str, world: tuple[Object, ...], one: Object, count: int) -> Iterator[Sequence]:
    """Creations of mutants, and an update to one; an object that exists already is only updated."""
    token, inputs = one
    others = tuple(row for row in world if not _same(row, one))
    found = mutants(name, inputs)
    for what, mutant in itertools.islice(found, count):
        yield Sequence(f"{name} with {what}", others, (Step("create", token, mutant),))
    for what, mutant in found:
        # What the provider replaces is no update.
        if not diff(parse(token), inputs, inputs, mutant, {}).replaces:
            steps = (Step("create", token, inputs), Step("update", token, mutant))
            yield Sequence(f"{name} updated with {what}", others, steps)
            break


def _same(one: Object, other: Object) -> bool:
    """Whether two objects have the same kind, namespace and name."""
    return one[0] == other[0] and all(
        (one[1].get("metadata") or {}).get(key) == (other[1].get("metadata") or {}).get(key)
        for key in ("name", "namespace")
    )


def _lives() -> Iterator[Sequence]:
    """Several requests for one name."""
    one = spaced("one", data={"a": "1"})
    other = {**copy.deepcopy(one), "data": {"a": "2"}}
    create, again = Step("create", CONFIG_MAP, one), Step("create", CONFIG_MAP, other)
    update, delete = Step("update", CONFIG_MAP, other), Step("delete", CONFIG_MAP, one)
    lab, numbered = named("other-lab"), but(WEB, {"metadata.name": "1st"})
    nowhere = {"metadata": {"name": "one", "namespace": "other-lab"}}
    yield Sequence("a life", (), (create, update, delete))
    yield Sequence("a taken name", (), (create, again))
    yield Sequence("a name that is free again", (), (create, delete, again))
    yield Sequence("deleted twice", (), (create, delete, delete))
    yield Sequence("updated after its end", (), (create, delete, update))
    yield Sequence("a name that starts with a digit", (), (Step("create", SERVICE, numbered),))
    yield Sequence("no namespace", (), (Step("create", CONFIG_MAP, nowhere),))
    yield Sequence("a namespace that is there", ((NAMESPACE, lab),), (Step("create", CONFIG_MAP, nowhere),))
    sealed = {**one, "immutable": True}
    for word, change in (("changed", {**sealed, "data": {"a": "2"}}), ("opened", one), ("kept", sealed)):
        steps = (Step("create", CONFIG_MAP, sealed), Step("update", CONFIG_MAP, change), delete)
        yield Sequence(f"a sealed object that is {word}", (), steps)
