"""Large stacks composed against mocks: their clusters, and the manager that reads their outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from infra import stackspec
from infra.outputs.cluster import StackOutputs
from infra.stackspec import StackSpec
from infra.stackspec.several.derived import ClusterMember
from stacks import compose
from tests.components.aws import computed as aws
from tests.components.gcp import computed as gcp
from tests.components.graph import Computed, Graph, deploy_graph


def outputs_of(states: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer of the engine to reads of outputs."""

    def answer(args: Any) -> Mapping[str, object]:
        return {"name": args["name"], "outputs": states.get(args["name"].rpartition("/")[2], {})}

    return {"pulumi:pulumi:readStackOutputs": answer}


def exported(cluster: Graph) -> dict[str, Any]:
    """The outputs of the stack of a cluster."""
    return {"trainstack": StackOutputs.model_validate(cluster.outputs).model_dump(mode="json")}


@dataclass(frozen=True, eq=False)
class Large:
    """A shipped large stack."""

    stack: str
    clusters: tuple[str, ...]
    computed: Computed

    @cache  # noqa: B019 - two objects of the module
    def worker(self, cluster: str) -> Graph:
        """Everything that the stack of a cluster requests."""
        loaded = stackspec.load_file(f"{self.stack}-{cluster}")
        assert loaded.member
        return self.of_member(loaded.spec, loaded.member)

    def of_member(self, spec: StackSpec, member: ClusterMember) -> Graph:
        """Everything that the stack of a cluster with this spec requests."""
        return deploy_graph(lambda: compose(spec, member), self.computed)

    def deployed(self) -> dict[str, Any]:
        """The outputs of the stacks of all clusters, by stack."""
        return {f"{self.stack}-{one}": exported(self.worker(one)) for one in self.clusters}

    def manager(self, states: Mapping[str, Any], of: StackSpec | None = None) -> Graph:
        """Everything that the stack of the manager requests, beside clusters with these outputs."""
        spec = of or stackspec.load_file(self.stack).spec
        return deploy_graph(lambda: compose(spec), self.computed, outputs_of(states))

    @cache  # noqa: B019 - two objects of the module
    def whole(self) -> Graph:
        """The manager of clusters that are all deployed."""
        return self.manager(self.deployed())


AWS = Large("large-aws", ("usw2", "use1"), aws.COMPUTED)
GOOGLE = Large("large-gcp", ("usc1", "use4"), gcp.COMPUTED)
MIXED = Large("large-mixed", ("use1", "usc1"), {**aws.COMPUTED, **gcp.COMPUTED})
STACK, CLUSTERS = AWS.stack, AWS.clusters
worker, deployed, manager, whole = AWS.worker, AWS.deployed, AWS.manager, AWS.whole
of_member = AWS.of_member
