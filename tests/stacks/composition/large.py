"""A large stack composed against mocks: its clusters, and the manager that reads their outputs."""

import functools
from collections.abc import Mapping
from typing import Any

from infra import stackspec
from infra.outputs.cluster import StackOutputs
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.graph import Graph, deploy_graph

STACK = "large-aws"
CLUSTERS = ("usw2", "use1")
PREFIX = "trainstack/"


@functools.cache
def worker(cluster: str) -> Graph:
    """Everything that the stack of a cluster requests."""
    loaded = stackspec.load_file(f"{STACK}-{cluster}")
    return deploy_graph(lambda: compose(loaded.spec, loaded.member), aws.COMPUTED)


def deployed() -> dict[str, Any]:
    """The outputs of the stacks of all clusters, by stack."""
    return {f"{STACK}-{one}": {"trainstack": _record(one)} for one in CLUSTERS}


def _record(cluster: str) -> Mapping[str, Any]:
    return StackOutputs.model_validate(worker(cluster).outputs).model_dump(mode="json")


def outputs_of(states: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer of the engine to reads of outputs."""

    def answer(args: Any) -> Mapping[str, object]:
        return {"name": args["name"], "outputs": states.get(args["name"].rpartition("/")[2], {})}

    return {"pulumi:pulumi:readStackOutputs": answer}


def manager(states: Mapping[str, Any]) -> Graph:
    """Everything that the stack of the manager requests, beside clusters with these outputs."""
    spec = stackspec.load_file(STACK).spec
    return deploy_graph(lambda: compose(spec), aws.COMPUTED, outputs_of(states))


@functools.cache
def whole() -> Graph:
    """The manager of clusters that are all deployed."""
    return manager(deployed())
