"""Documents of the ledger of managed jobs, with their queue and what runs."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infra.jobs.service import JobPhase, JobState, ServiceJob
from infra.stackspec.layouts import JobMachineSpec
from infra.stackspec.stack import StackSpec
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.demand import PoolDemand, pool_demand
from trainstack.capacity.endings import RunningJob
from trainstack.capacity.pools import managed_machines, pools
from trainstack.capacity.report import Live
from trainstack.ledger import forms
from trainstack.ledger.managed import JobPool, first_start, months, pool_name, purchase_of
from trainstack.ledger.periods import DAY, bounds


def documents(
    spec: StackSpec,
    known: Sequence[PoolCapacity],
    jobs: Sequence[ServiceJob],
    names: Sequence[str],
    now: datetime.datetime,
) -> list[dict[str, Any]]:
    """Documents of `trainstack ledger` for months in order.

    They begin with the day of the first job with GPUs, or of the first plan or reservation whose start the
    cloud describes; earlier days would be idle commitments of a stack that did not exist. Empty without both.
    """
    named = {one.flavor: JobPool(one.flavor, one.node_gpus, _usd(one)) for one in known}
    machines, teams = managed_machines(spec), [team.name for team in spec.teams]
    starts = [one.period.start for one in known if one.prepaid and one.period.start is not None]
    begun = [
        start for job in jobs if _pool(job, machines) in named and (start := first_start(job)) is not None
    ]
    at = min((one for one in (*starts, *begun) if one <= now), default=None)
    if at is None:
        return []
    first = at.replace(hour=0, minute=0, second=0, microsecond=0) if at in begun else at
    found = []
    for month in names:
        start, end = bounds(month)
        if end <= first or start >= now:
            continue
        bodies = forms.documents(months(machines, named, jobs, month, now=now, teams=teams))
        covered = {"begun": max(first, start), "seen": min(now, end)}
        times = {key: f"{value:%Y-%m-%dT%H:%M:%SZ}" for key, value in covered.items()}
        found.append(
            {
                "schema": "trainstack.ledger/1",
                "stack": spec.name,
                "month": month,
                "teams": [{**body, **times} for body in bodies],
            }
        )
    return found


def live(spec: StackSpec, jobs: Iterable[ServiceJob], now: datetime.datetime, unseen: int) -> Live:
    """Waiting and running jobs; `unseen`: jobs that the login may not read."""
    named = {one.flavor: one for one in pools(spec, now.date())}
    machines = managed_machines(spec)
    waiting: dict[str, list[tuple[float, datetime.timedelta | None]]] = {}
    waits: dict[str, list[datetime.timedelta]] = {}
    running: list[RunningJob] = []
    resumable: dict[bool, float] = {}
    for job in jobs:
        pool = named.get(_pool(job, machines))
        if pool is None or job.search:
            continue
        gpus, limit = float(job.nodes * pool.node_gpus), datetime.timedelta(seconds=job.max_run_s)
        start = first_start(job)
        resumes = bool(job.checkpoint_uri)
        if start is not None and start >= now - 7 * DAY:
            waits.setdefault(pool.flavor, []).append(start - job.created)
            resumable[resumes] = resumable.get(resumes, 0.0) + gpus
        if job.state is not JobState.RUNNING:
            continue
        if start is None or job.phase in (JobPhase.WAITING, JobPhase.INTERRUPTED):
            waiting.setdefault(pool.flavor, []).append((gpus, limit))
        else:
            running.append(RunningJob(job.name, job.team, (pool.flavor,), gpus, start + limit, resumes))
    total = sum(resumable.values())
    return Live(
        demand=_demand(waiting, waits),
        resumable=resumable.get(True, 0.0) / total if total else None,
        notes=[f"{unseen} jobs of others are not counted: the login may not read them"] if unseen else [],
        running=running,
    )


def _demand(
    waiting: Mapping[str, list[tuple[float, datetime.timedelta | None]]],
    waits: Mapping[str, list[datetime.timedelta]],
) -> list[PoolDemand]:
    return [
        pool_demand(name, waiting.get(name, []), sorted(waits.get(name, [])))
        for name in sorted({*waiting, *waits})
    ]


def _pool(job: ServiceJob, machines: Sequence[JobMachineSpec]) -> str:
    one, kind = purchase_of(job, machines)
    return pool_name(one, kind) if one is not None else ""


def _usd(pool: PoolCapacity) -> float | None:
    """Per GPU-hour; other purchases than a reservation are a share of the price on demand."""
    rate = pool.rates["own" if pool.prepaid else "on_demand"]
    return rate.usd if rate else None
