"""Estimated starts of waiting jobs: by simulation, else from past waits, else unknown."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainstack.queues import history, simulation
from trainstack.queues.bound import fewest, wait_bound
from trainstack.queues.state import Job, State


@dataclass(frozen=True)
class Estimate:
    """The estimated admission of a job; its nodes may still have to boot."""

    kind: Literal["simulated", "history", "unknown"]
    """`simulated`: without new jobs or preemptions, with jobs that run until their deadlines. `history`: 95 %
    of jobs like it start by then, with 95 % confidence."""
    start: datetime.datetime | None
    """None where it is unknown."""
    waits: int
    """The number of past waits of its class."""
    why: str = ""
    """The reason why it is unknown, or a qualification."""


def estimates(state: State) -> Mapping[tuple[str, str], Estimate]:
    """An estimate for every job that waits for quota, by the job's identity."""
    simulated, past = simulation.starts(state), history.waits(state.jobs)
    found: dict[tuple[str, str], Estimate] = {}
    for job in state.jobs:
        if not job.queued:
            continue
        known = past.get(history.kind(job), ())
        count = sum(wait.waited is not None for wait in known)
        start = simulated.get(job.key) if simulated else None
        bound = wait_bound(known, state.taken)
        if start is not None:
            found[job.key] = Estimate("simulated", start, count)
        elif bound is not None:
            found[job.key] = _from_history(job, job.created + bound.wait, bound.waits, state.taken)
        else:
            why = f"{count} past waits of jobs like it, {fewest()} are needed"
            found[job.key] = Estimate("unknown", None, count, why)
    return found


def _from_history(job: Job, start: datetime.datetime, waits: int, now: datetime.datetime) -> Estimate:
    late = "it waits longer than 95 % of jobs like it" if start < now else ""
    if job.evictions:
        late = "counted from its first submission; it was stopped since"
    return Estimate("history", start, waits, late)
