"""The share of free GPUs that cannot be used because they are spread over too many nodes.

Two measures, from 0 (all free GPUs can be used) to 1 (none).

Of single pods: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (USENIX ATC 2023), for whole GPUs: free GPUs on nodes that have too few for a pod,
averaged over the pods of users. Of whole jobs: the GPUs that are left after as many jobs of a
shape as fit were placed, averaged over the shapes by their requested GPUs, including the
rest that is too small for one more job.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainstack.queues.state import Job, Node, Pod


@dataclass(frozen=True)
class Shape:
    """A set of pods that start together."""

    pods: int
    gpus: int
    """GPUs of each pod."""


def free_gpus(nodes: Iterable[Node], pods: Iterable[Pod]) -> Mapping[str, int]:
    """GPUs of each usable node that no pod uses; 0 on a node with more requests than GPUs."""
    held: Counter[str] = Counter()
    for pod in pods:
        held[pod.node] += pod.gpus
    return {node.name: max(node.gpus - held[node.name], 0) for node in nodes if node.usable}


def shapes(jobs: Iterable[Job]) -> Mapping[Shape, int]:
    """The number of jobs per shape, of jobs that request GPUs."""
    return Counter(
        Shape(one.count, one.gpus) for job in jobs for one in job.pod_sets if one.gpus and one.count
    )


def slots(free: Iterable[int], gpus: int) -> int:
    """The number of pods with that many GPUs that fit."""
    return sum(amount // gpus for amount in free)


def of_pods(free: Sequence[int], asked: Mapping[Shape, int]) -> float | None:
    """The share of the free GPUs that a pod cannot use, on average over all pods; None without any pod."""
    pods = sum(shape.pods * count for shape, count in asked.items())
    if not pods:
        return None
    there = sum(free)
    if not there:
        return 0.0
    lost = sum(
        shape.pods * count * sum(amount for amount in free if amount < shape.gpus)
        for shape, count in asked.items()
    )
    return lost / pods / there


def of_jobs(domains: Sequence[Sequence[int]], asked: Mapping[Shape, int]) -> float | None:
    """The share of the free GPUs that remains after as many jobs of a shape as fit; None without any job.

    `domains`: free GPUs of the nodes of each part of the network that a job has to stay in; a pool without
    such parts is one domain.
    """
    demand = sum(shape.pods * shape.gpus * count for shape, count in asked.items())
    if not demand:
        return None
    there = sum(sum(free) for free in domains)
    if not there:
        return 0.0
    left = 0.0
    for shape, count in asked.items():
        whole = shape.pods * shape.gpus
        placed = sum(slots(free, shape.gpus) // shape.pods for free in domains) * whole
        left += whole * count * (1 - placed / there)
    return left / demand
