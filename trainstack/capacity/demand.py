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
from trainstack.capacity.endings import RunningJob
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
        pool_demand(
            name,
            [(job.gpus / shares.get(name, 1), job.longest) for job in waiting.get(name, [])],
            sorted(past.get(name, [])),
        )
        for name in sorted({*waiting, *past})
    ]


def pool_demand(
    flavor: str,
    jobs: Sequence[tuple[float, datetime.timedelta | None]],
    waits: Sequence[datetime.timedelta],
) -> PoolDemand:
    """The demand of a pool; `jobs`: GPUs and time limit of each waiting one; `waits`: past ones, sorted."""
    limited = [(gpus, longest) for gpus, longest in jobs if longest is not None]
    return PoolDemand(
        flavor=flavor,
        jobs=len(jobs),
        gpus=sum(gpus for gpus, _ in jobs),
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


def checkpointed(cluster: ClusterApi, state: State) -> frozenset[tuple[str, str]] | None:
    """Namespace and name of objects that declare a checkpoint interval; None where they cannot be read."""
    if not state.whole:
        return None
    try:
        owners = [body for kind in RETRYABLE for body in listed(cluster, path(kind))]
    except ListRefusedError:
        return None
    return declared(owners)


def declared(owners: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """Namespace and name of objects that declare a checkpoint interval."""
    return frozenset(
        (body["metadata"]["namespace"], body["metadata"]["name"])
        for body in owners
        if run_limits({}, body).interval is not None
    )


def share(jobs: Iterable[Job], known: frozenset[tuple[str, str]], shares: Mapping[str, int]) -> float | None:
    """The share of GPUs of admitted jobs whose owner declares a checkpoint interval; None without any.

    GPU-hours would be weighted by run times, which jobs that still run do not have yet.
    """
    gpus = {True: 0.0, False: 0.0}
    for job in jobs:
        if job.is_("Admitted"):
            gpus[(job.namespace, job.name) in known] += sum(_gpus(job, shares).values())
    total = sum(gpus.values())
    return gpus[True] / total if total else None


def running(
    state: State,
    known: frozenset[tuple[str, str]] | None,
    shares: Mapping[str, int],
    teams: Mapping[str, str],
) -> list[RunningJob]:
    """Jobs that hold GPUs; `teams`: names by namespace."""
    return [
        RunningJob(
            name=job.name,
            team=teams.get(job.namespace, job.namespace),
            pools=tuple(found),
            gpus=sum(found.values()),
            until=job.deadline,
            checkpoints=None if known is None else (job.namespace, job.name) in known,
        )
        for job in state.jobs
        if job.admitted and (found := _gpus(job, shares))
    ]


def _gpus(job: Job, shares: Mapping[str, int]) -> dict[str, float]:
    """Assigned GPUs by pool; a share of a GPU counts as its part."""
    return {
        pool: float(amount) / shares.get(pool, 1)
        for (pool, resource), amount in job.assigned.items()
        if resource == GPU and amount
    }
