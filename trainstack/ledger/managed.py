"""The ledger of a stack without a cluster: GPU-seconds of managed jobs, in the forms of books."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agents.gpu_ledger.attempts import NO_PROJECT, days
from agents.gpu_ledger.price import HOUR
from agents.gpu_ledger.row import LedgerRow
from infra.jobs.service import JobPhase, Moment, ServiceJob
from infra.stackspec.layouts import JobMachineSpec
from trainstack.ledger.books import Line, Month
from trainstack.ledger.hourly import HeldSpan, hourly
from trainstack.ledger.periods import bounds
from trainstack.queues.state import GPU

_IDLE = (JobPhase.WAITING, JobPhase.INTERRUPTED, JobPhase.WAITED_TOO_LONG, JobPhase.OVER)
"""Phases in which a job has no machines."""


@dataclass(frozen=True)
class JobPool:
    """A machine of the stack, or another way to buy it that jobs chose."""

    name: str
    gpus: int
    usd: float | None
    """US dollars per GPU-hour: on demand, or of the plan or reservation; None: unknown."""


def pool_name(machine: JobMachineSpec, kind: str) -> str:
    """Name of a machine in the ledger; jobs that chose another way to buy have their own."""
    return machine.name if kind == machine.purchase.kind else f"{machine.name} ({kind})"


def purchase_of(job: ServiceJob, machines: Iterable[JobMachineSpec]) -> tuple[JobMachineSpec | None, str]:
    """The machine of the stack that a job is on, and how it was bought; None: the stack has none."""
    same = [one for one in machines if one.machine == job.machine]
    if job.reserved:
        reserved = [one for one in same if one.reservation is not None]
        return (reserved[0], reserved[0].purchase.kind) if reserved else (None, "reserved")
    kind = "spot" if job.spot else "flex_start" if job.flex_start else "on_demand"
    bought = [one for one in same if one.purchase.kind == kind]
    hourly = [one for one in same if one.reservation is None]
    return next(iter([*bought, *hourly]), None), kind


def spans(job: ServiceJob, now: Moment) -> Iterator[tuple[Moment, Moment]]:
    """The times in which a job had machines.

    SageMaker bills from TrainingStartTime, when machines are there, until TrainingEndTime (botocore 1.44.5,
    DescribeTrainingJobResponse); Vertex AI has one time of the start.
    """
    end = now if job.ended is None else min(job.ended, now)
    start: Moment | None = None
    for change in job.changes:
        if change.phase in _IDLE and start is not None:
            yield start, min(change.at, end)
            start = None
        elif change.phase not in _IDLE and start is None:
            start = change.at
    if start is not None and start < end:
        yield start, end


def first_start(job: ServiceJob) -> Moment | None:
    """The time at which a job got machines first; None: not yet, or never."""
    return next((change.at for change in job.changes if change.phase not in _IDLE), None)


def months(
    machines: Sequence[JobMachineSpec],
    found: Mapping[str, JobPool],
    jobs: Iterable[ServiceJob],
    month: str,
    *,
    now: Moment,
    teams: Iterable[str],
) -> list[Month]:
    """The month of each of the `teams`, and of others with jobs on GPUs.

    `found`: the machines and ways to buy by `pool_name`. A job on another machine has no GPUs that are known,
    and is left out. A running spot job costs the price on demand at most.
    """
    first, after = (int(one.timestamp()) for one in bounds(month))
    until = min(int(now.timestamp()), after)
    held: dict[str, dict[tuple[str, str], int]] = {name: {} for name in teams}
    usd: dict[tuple[str, str, str], float | None] = {}
    held_by: dict[str, list[HeldSpan]] = {}
    for job in jobs:
        one, kind = purchase_of(job, machines)
        pool = found.get(pool_name(one, kind)) if one is not None and not job.search else None
        if pool is None:
            continue
        paid = job.billed_s / job.trained_s if job.billed_s is not None and job.trained_s else 1.0
        mine = [(int(start.timestamp()), int(end.timestamp())) for start, end in spans(job, now)]
        gpus = job.nodes * pool.gpus
        held_by.setdefault(job.team, []).extend(HeldSpan(pool.name, gpus, *times) for times in mine)
        for day, seconds in _days(mine, first, until):
            amount = seconds * gpus
            of_team = held.setdefault(job.team, {})
            of_team[day, pool.name] = of_team.get((day, pool.name), 0) + amount
            key = job.team, day, pool.name
            before = usd.get(key, 0.0)
            known = before is not None and pool.usd is not None
            usd[key] = before + amount / HOUR * pool.usd * paid if known else None  # type: ignore[operator]
    return [
        Month(
            team=team,
            namespace=team,
            lines=[
                Line(team, team, LedgerRow(day, NO_PROJECT, name, GPU, amount, amount), usd[team, day, name])
                for (day, name), amount in sorted(rows.items())
            ],
            uncertain_hours=0.0,
            begun=first,
            seen=until,
            budget=None,
            notes=(),
            hourly=hourly(held_by.get(team, ()), first, until),
        )
        for team, rows in sorted(held.items())
    ]


def _days(found: Iterable[tuple[int, int]], first: int, until: int) -> Iterator[tuple[str, int]]:
    for start, end in found:
        for day, since, to in days(max(start, first), min(end, until)):
            yield day, to - since
