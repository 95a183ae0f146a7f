"""Demand that waits in the queues now, and past waits of jobs that the cluster still has, by pool."""

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.capacity_windows.verdicts import run_limits
from agents.queued_jobs.reasons import RETRYABLE
from agents.shared.jobs import path
from infra.clouds.kubectl import ClusterApi
from trainstack.collect.object_lists import ListRefusedError, listed
from trainstack.ledger.periods import HOUR
from trainstack.queues.matching import candidates
from trainstack.queues.state import GPU, Job, State

LEAST_WAITS = 20
"""With fewer waits, the longest one would be the 95th percentile."""


@dataclass(frozen=True)
class PoolDemand:
    """Jobs of one pool that wait, and waits of those that it admitted."""

    flavor: str
    """The pool that they try first; empty where it cannot be read."""
    jobs: int
    gpus: float
    """A share of a GPU counts as its part, here and in `gpu_hours`."""
    gpu_hours: float
    """Of jobs with a time limit: GPUs x limit, at most."""
    without_limit: int
    """Jobs without a time limit, which `gpu_hours` leaves out."""
    waits: int
    """Past waits."""
    p50_minutes: float | None
    """From submission to admission; None without waits."""
    p95_minutes: float | None
    """None with fewer than `LEAST_WAITS`."""


def demand(state: State, shares: Mapping[str, int]) -> list[PoolDemand]:
    """Waiting jobs with GPUs and past waits, by pool; `shares` of each GPU by pool, as Kueue counts them."""
    waiting: dict[str, list[Job]] = {}
    past: dict[str, list[datetime.timedelta]] = {}
    for job in state.jobs:
        if job.queued and job.active and job.gpus:
            waiting.setdefault(_first(job, state), []).append(job)
        # An evicted job waited several times, and its Workload has only the last admission.
        elif job.is_("Admitted") and not job.evictions:
            for flavor in {name for name, resource in job.assigned if resource == GPU}:
                past.setdefault(flavor, []).append(job.conditions["Admitted"].since - job.created)
    return [
        _pool(name, shares.get(name, 1), waiting.get(name, []), sorted(past.get(name, [])))
        for name in sorted({*waiting, *past})
    ]


def _pool(flavor: str, shares: int, jobs: Sequence[Job], waits: Sequence[datetime.timedelta]) -> PoolDemand:
    limited = [(job.gpus / shares, job.longest) for job in jobs if job.longest is not None]
    return PoolDemand(
        flavor=flavor,
        jobs=len(jobs),
        gpus=sum(job.gpus for job in jobs) / shares,
        gpu_hours=sum(gpus * (longest / HOUR) for gpus, longest in limited),
        without_limit=len(jobs) - len(limited),
        waits=len(waits),
        p50_minutes=_quantile(waits, 0.5) if waits else None,
        p95_minutes=_quantile(waits, 0.95) if len(waits) >= LEAST_WAITS else None,
    )


def _quantile(waits: Sequence[datetime.timedelta], share: float) -> float:
    """The wait, in minutes, that at least this share of the sorted `waits` does not exceed (nearest rank)."""
    rank = math.ceil(round(share * len(waits), 9))
    return waits[rank - 1].total_seconds() / 60


def _first(job: Job, state: State) -> str:
    """The first pool of its queue that has GPUs and that its pods accept; empty where it cannot be read."""
    queue = (state.cluster_queues or {}).get(job.cluster_queue)
    if queue is None or state.flavors is None:
        return ""
    found = (name for name in candidates(job, queue, state.flavors) if (name, GPU) in queue.quotas)
    return next(found, "")


def resumable(cluster: ClusterApi, state: State, shares: Mapping[str, int]) -> float | None:
    """The share of GPUs of known jobs whose objects declare a checkpoint interval; None where unknown.

    GPU-hours would be weighted by run times, which jobs that still run do not have yet.
    """
    if not state.whole:
        return None
    try:
        owners = [body for kind in RETRYABLE for body in listed(cluster, path(kind))]
    except ListRefusedError:
        return None
    return share(state.jobs, owners, shares)


def share(
    jobs: Iterable[Job], owners: Iterable[Mapping[str, Any]], shares: Mapping[str, int]
) -> float | None:
    """The share of GPUs of admitted jobs whose owner declares a checkpoint interval; None without any."""
    declared = {
        (body["metadata"]["namespace"], body["metadata"]["name"])
        for body in owners
        if run_limits({}, body).interval is not None
    }
    gpus = {True: 0.0, False: 0.0}
    for job in jobs:
        if job.is_("Admitted"):
            gpus[(job.namespace, job.name) in declared] += sum(
                float(amount) / shares.get(pool, 1)
                for (pool, resource), amount in job.assigned.items()
                if resource == GPU
            )
    total = sum(gpus.values())
    return gpus[True] / total if total else None
