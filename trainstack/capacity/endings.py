"""Ends of commitments, and running jobs that may still run then (pure)."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from infra.catalog.registry import CATALOGS
from trainstack.capacity.classes import PoolCapacity

_PLAN_MINUTES: Final = 30
"""SageMaker begins to end machines of a plan so long before the end of its capacity. Source: SageMaker
developer guide, "Training plans utilization for SageMaker training jobs", read 2026-11-30."""


@dataclass(frozen=True)
class RunningJob:
    """A job that has machines."""

    name: str
    team: str
    pools: tuple[str, ...]
    """Names of its pools in the ledger."""
    gpus: float
    until: datetime.datetime | None
    """When its time limit ends it; None without a limit."""
    checkpoints: bool | None
    """Whether it declares checkpoints; None: unknown."""


@dataclass(frozen=True)
class CommitmentEnd:
    """The end of a commitment, or of a part of it."""

    pool: str
    path: str
    machine: str
    kind: str
    reservation: str | None
    nodes: int
    end: datetime.datetime
    stops: datetime.datetime | None
    """When running jobs are stopped; None: the cloud lets machines run, at the price on demand."""
    over: tuple[RunningJob, ...] | None
    """Running jobs that may still run then; None: they were not read."""


def endings(
    pools: Sequence[PoolCapacity], running: Iterable[RunningJob] | None, now: datetime.datetime
) -> Iterator[CommitmentEnd]:
    """Ends that are to come, the next one first."""
    jobs = None if running is None else list(running)
    found = [one for pool in pools if pool.prepaid for one in _of_pool(pool, jobs, now)]
    yield from sorted(found, key=lambda one: one.end)


def _of_pool(
    pool: PoolCapacity, running: Sequence[RunningJob] | None, now: datetime.datetime
) -> Iterator[CommitmentEnd]:
    ends = {part.span.end: part.nodes for part in pool.segments} or {pool.period.end: pool.nodes}
    for end, nodes in ends.items():
        if end is None or end <= now:
            continue
        notice = stop_notice(pool)
        stops = None if notice is None else end - notice
        mine = None if running is None else [job for job in running if pool.flavor in job.pools]
        yield CommitmentEnd(
            pool=pool.pool,
            path=pool.path,
            machine=pool.machine,
            kind=pool.kind,
            reservation=pool.reservation,
            nodes=nodes,
            end=end,
            stops=stops,
            over=None
            if mine is None
            else tuple(job for job in mine if stops and (job.until is None or job.until > stops)),
        )


def stop_notice(pool: PoolCapacity) -> datetime.timedelta | None:
    """The time before the end of a commitment when its jobs are stopped; None: machines run on.

    Machines in a reservation of on-demand capacity run on without it and are billed on demand (AWS: EC2 User
    Guide, capacity-reservations-using; Google Cloud: FutureReservation.reservationMode DEFAULT, "do not
    terminate VMs at the end"); those of a block, of calendar mode and of a plan are ended.
    """
    if pool.kind == "block":
        return datetime.timedelta(minutes=CATALOGS[pool.cloud].block_drain_minutes)
    return datetime.timedelta(minutes=_PLAN_MINUTES) if pool.kind == "training_plan" else None
