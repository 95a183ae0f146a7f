"""States of queues, made up: one pool of two nodes with eight GPUs each, shared by two teams."""

import datetime
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from trainstack.queues.state import (
    GPU,
    ClusterQueue,
    Condition,
    Flavor,
    Job,
    LocalQueue,
    Node,
    Pod,
    PodSet,
    Quota,
    State,
)

NOW = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.UTC)
POOL = "a100"


def hours(count: float) -> datetime.timedelta:
    return datetime.timedelta(hours=count)


def condition(true: bool = True, message: str = "", since: datetime.datetime = NOW) -> Condition:
    return Condition(true, "", message, since)


def job(name: str, team: str = "red", gpus: int = 8, pods: int = 1, **more: Any) -> Job:
    """A job that waits since an hour."""
    given = {
        "priority": 0,
        "created": NOW - hours(1),
        "pod_sets": (PodSet(pods, {GPU: Decimal(gpus)} if gpus else {"cpu": Decimal(1)}),),
        **more,
    }
    return Job(team, f"job-{name}", name, "default", team, **given)


def refused(message: str) -> dict[str, Condition]:
    """Kueue's words about a job that it does not admit."""
    return {"QuotaReserved": condition(False, message)}


def running(name: str, team: str = "red", gpus: int = 8, ends: float | None = None, **more: Any) -> Job:
    """A job that runs since half an hour, and ends in so many hours at the latest."""
    waited = job(name, team, gpus, **more)
    since = condition(since=NOW - hours(0.5))
    return replace(
        waited,
        conditions={"QuotaReserved": since, "Admitted": since, "PodsReady": since},
        assigned={(POOL, GPU): Decimal(waited.gpus)},
        deadline=None if ends is None else NOW + hours(ends),
    )


def queue(name: str, gpus: int = 8, **more: Any) -> ClusterQueue:
    quotas = {(POOL, GPU): Quota(Decimal(gpus), more.pop("limit", None))}
    return ClusterQueue(name, "all", flavors=(POOL,), quotas=quotas, **more)


def state(jobs: Sequence[Job], *, gpus: Sequence[int] = (8, 8), **more: Any) -> State:
    """The jobs in queues of their teams; each that runs has its pods on the first node with room."""
    names = dict.fromkeys(["red", "blue", *(one.cluster_queue for one in jobs)])
    queues = more.pop("queues", [queue(name) for name in names])
    held = {
        name: sum(one.gpus for one in jobs if one.holding and one.cluster_queue == name) for name in names
    }
    nodes = tuple(Node(f"n{index}", {"pool": POOL}, count) for index, count in enumerate(gpus))
    given = {
        "cluster_queues": {
            one.name: replace(one, used={(POOL, GPU): Decimal(held.get(one.name, 0))}) for one in queues
        },
        "local_queues": tuple(LocalQueue(name, "default", name) for name in names),
        "flavors": {POOL: Flavor(POOL, {"pool": POOL})},
        "nodes": nodes,
        "pods": _placed(jobs, nodes),
        **more,
    }
    return State(taken=NOW, jobs=tuple(jobs), **given)


def _placed(jobs: Sequence[Job], nodes: Sequence[Node]) -> tuple[Pod, ...]:
    free = {node.name: node.gpus for node in nodes}
    made = []
    for one in jobs:
        for pods in one.pod_sets if one.admitted else ():
            for _ in range(pods.count):
                node = next((name for name, left in free.items() if left >= pods.gpus), "")
                if node:
                    free[node] -= pods.gpus
                made.append(Pod(one.namespace, one.workload, node, pods.gpus))
    return tuple(made)
