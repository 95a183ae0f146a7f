"""A small cluster to queue on: one GPU pool of four nodes, one pool without GPUs, two teams."""

from components.kubernetes.offers import FabricOffer
from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs
from smoke_training.fabric import Fabric

ADAPTERS = "vpc.amazonaws.com/efa"


def fabric(count: int) -> FabricOffer:
    return {"kind": Fabric.EFA, "resource": ADAPTERS, "count": count, "pod_resources": {}}


def gpu_flavor(name: str = "a100", *, nodes: int = 4, gpus: int = 8, adapters: int = 4) -> FlavorArgs:
    flavor: FlavorArgs = {
        "name": name,
        "node_labels": {"trainstack.dev/pool": name},
        "max_nodes": nodes,
        "cpu": 90,
        "memory_gib": 1000,
        "gpus": gpus,
    }
    if adapters:
        flavor["fabric"] = fabric(adapters)
    return flavor


def cpu_flavor(name: str = "cpu") -> FlavorArgs:
    return {**gpu_flavor(name, nodes=2, gpus=0, adapters=0), "cpu": 16, "memory_gib": 60}


def teams(**weights: float) -> list[TeamArgs]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


GATE: GateArgs = {"nodes": {"a100": 2}}
