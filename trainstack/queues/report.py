"""The report on a queue: running jobs, waiting jobs with reasons, free capacity of pools."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agents.queued_jobs.reasons import Reason
from trainstack.queues.estimates import Estimate, estimates
from trainstack.queues.pools import Capacity, Pool
from trainstack.queues.positions import Place, places
from trainstack.queues.reasons import reason, unprocessed
from trainstack.queues.state import Job, Moment, State, Unprocessed

SCHEMA = "trainstack.queue/1"
MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
"""The label of a job with the seconds after which Kueue stops it (kubernetes-sigs/kueue v0.19.2
pkg/controller/constants/constants.go)."""


@dataclass(frozen=True)
class Running:
    """A job with all pods ready, or on a cluster to which a manager sent it."""

    job: str
    team: str
    gpus: int
    pools: tuple[str, ...]
    """More than one where its pods are of several kinds."""
    since: Moment
    """Its admission."""
    ends_by: Moment | None
    """None without a deadline."""
    by_default: bool = False
    """The deadline is the one of jobs that declare none."""


@dataclass(frozen=True)
class Waiting:
    """A job that does not run yet."""

    job: str
    team: str
    gpus: int
    queue: str
    """Its LocalQueue."""
    since: Moment
    """Its submission."""
    place: Place | None
    """None where it no longer waits for quota."""
    estimate: Estimate | None
    """None where it no longer waits for quota."""
    reason: Reason


@dataclass(frozen=True)
class Report:
    """The state at one moment, as far as the caller has access."""

    stack: str
    taken: Moment
    running: tuple[Running, ...]
    waiting: tuple[Waiting, ...]
    pools: tuple[Pool, ...]
    notes: tuple[str, ...]
    """Missing data, with reasons."""


def report(state: State, stack: str, teams: Mapping[str, str], only: str | None = None) -> Report:
    """The report about a stack; `teams`: their names by namespace; `only`: the namespace of one of them."""
    seen = [job for job in state.jobs if only in (None, job.namespace) and not job.finished]
    capacity, found, standing = Capacity(state), estimates(state), places(state)
    return Report(
        stack=stack,
        taken=state.taken,
        running=tuple(
            _running(job, teams) for job in sorted(seen, key=_by_admission) if job.running and job.active
        ),
        waiting=tuple(
            Waiting(
                job=job.name,
                team=teams.get(job.namespace, job.namespace),
                gpus=job.gpus,
                queue=job.local_queue,
                since=job.created,
                place=standing.get(job.key),
                estimate=found.get(job.key),
                reason=reason(job, capacity, standing),
            )
            for job in sorted(seen, key=lambda job: _by_place(job, standing))
            if not (job.running and job.active)
        )
        + tuple(_unprocessed(job, teams) for job in state.unprocessed if only in (None, job.namespace)),
        pools=tuple(capacity.pools.values()),
        notes=tuple(_notes(state, seen, standing)),
    )


def _unprocessed(job: Unprocessed, teams: Mapping[str, str]) -> Waiting:
    return Waiting(
        job=job.name,
        team=teams.get(job.namespace, job.namespace),
        gpus=job.gpus,
        queue=job.local_queue,
        since=job.created,
        place=None,
        estimate=None,
        reason=unprocessed(job),
    )


def _running(job: Job, teams: Mapping[str, str]) -> Running:
    pools = tuple(dict.fromkeys(name for name, _ in job.assigned))
    since = job.conditions["Admitted"].since
    team = teams.get(job.namespace, job.namespace)
    return Running(job.name, team, job.gpus, pools, since, job.deadline, job.default_deadline)


def _by_admission(job: Job) -> tuple[Moment, tuple[str, str]]:
    admitted = job.conditions.get("Admitted")
    return admitted.since if admitted else job.created, job.key


def _by_place(job: Job, standing: Mapping[tuple[str, str], Place]) -> tuple[bool, str, int, tuple[str, str]]:
    """Jobs with reserved quota first, then queue by queue."""
    place = standing.get(job.key)
    return place is not None, job.cluster_queue, place.number if place else 0, job.key


def _notes(state: State, seen: Iterable[Job], standing: Mapping[tuple[str, str], Place]) -> Iterable[str]:
    yield from (str(one) for one in state.refusals)
    if not state.whole:
        yield "jobs of other teams are not visible, so starts are estimated from past waits alone"
    endless = sum(job.holding and job.deadline is None and job.gpus > 0 for job in state.jobs)
    if state.whole and endless and standing:
        yield (
            f"jobs that hold GPUs without a deadline (label {MAX_EXEC_TIME}): {endless}; starts behind them "
            "cannot be simulated"
        )
    if any(job.key in standing and not standing[job.key].reported for job in seen):
        yield "places with ~ are by priority and age: Kueue reports none"


def document(found: Report) -> dict[str, Any]:
    """The report in the form of `SCHEMA`; null where unknown."""
    plain = asdict(found)
    for row, pool in zip(plain["pools"], found.pools, strict=True):
        row["free"] = pool.free
    for row, waiting in zip(plain["waiting"], found.waiting, strict=True):
        row["reason"]["fix"] = waiting.reason.fix
    for place in filter(None, (row["place"] for row in plain["waiting"])):
        place["told"] = place.pop("reported")
    return plain
