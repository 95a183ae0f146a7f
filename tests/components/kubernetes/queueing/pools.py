"""A small cluster to queue on: one GPU pool of four nodes, one pool without GPUs, two teams."""

from components.kubernetes.queueing.quotas import FlavorArgs, GateArgs, TeamArgs


def gpu_flavor(name: str = "a100", *, nodes: int = 4, gpus: int = 8, efa: int = 4) -> FlavorArgs:
    return {
        "name": name,
        "node_labels": {"trainstack.dev/pool": name},
        "nodes": nodes,
        "cpu": 90,
        "memory_gib": 1000,
        "gpus": gpus,
        "efa": efa,
    }


def cpu_flavor(name: str = "cpu") -> FlavorArgs:
    return {**gpu_flavor(name, nodes=2, gpus=0, efa=0), "cpu": 16, "memory_gib": 60}


def teams(**weights: float) -> list[TeamArgs]:
    return [{"name": name, "weight": weight} for name, weight in weights.items()]


GATE: GateArgs = {"flavor": "a100", "nodes": 2}
