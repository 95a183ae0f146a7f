"""The objects of Kueue that a small cluster with two teams gets."""

from components.kubernetes.queueing import kueue
from components.kubernetes.queueing.quotas import FlavorArgs
from tests.components.kubernetes.queueing.pools import GATE, cpu_flavor, gpu_flavor, teams

# The labels of EKS for the switches above a node.
LAYERS = tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in (1, 2, 3))
TEAMS = teams(**{"Research & Dev": 3, "product": 0.5})
TOPOLOGY: FlavorArgs = {
    **gpu_flavor("h100", adapters=32),
    "topology": [*LAYERS, "kubernetes.io/hostname"],
    "fixed_size": True,
}
FLAVORS = [gpu_flavor(), TOPOLOGY, cpu_flavor()]


def bodies(flavors: list[FlavorArgs] = FLAVORS) -> list[kueue.Body]:
    return [body for layer in kueue.layers(flavors, TEAMS, GATE) for body in layer]


def by_name(kind: str, flavors: list[FlavorArgs] = FLAVORS) -> dict[str, kueue.Body]:
    return {body["metadata"]["name"]: body for body in bodies(flavors) if body["kind"] == kind}
