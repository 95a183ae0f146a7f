"""Which jobs a pool with windows takes, and when it sends them away; pure, standard library only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .windows import Period

Object = Mapping[str, Any]

CHECKPOINT_NOTE = "trainstack.dev/checkpoint-minutes"
# As long as the queue lets a job's pods take to start (`kueue_values.PODS_READY_TIMEOUT`).
START = timedelta(minutes=20)
# A job that waits is looked at again no later, because people change what it says.
LONGEST = timedelta(minutes=10)
_SHORTEST = timedelta(seconds=10)


@dataclass(frozen=True)
class Run:
    """What a job says about how long it takes, and what it loses when it is stopped."""

    limit: timedelta | None
    """The longest that it runs once it is admitted; None: it does not say."""
    interval: timedelta | None
    """From one checkpoint to the next; None: it does not say that it makes some."""
    priority: str
    """Name of its priority class."""


@dataclass(frozen=True)
class Verdict:
    """Whether a job may be on the pool now, and why."""

    welcome: bool
    words: str
    again: timedelta | None = None
    """When a job that is sent away is looked at again."""


def said_by(workload: Object, owner: Object | None) -> Run:
    """What a Workload and the object that it was made for say.

    The limit is the shorter one of the queue's own (label `kueue.x-k8s.io/max-exec-time-seconds`, which
    counts earlier attempts) and the Job's `activeDeadlineSeconds`, which begins anew; every Job of a JobSet
    has to have one. The interval is the annotation or label `trainstack.dev/checkpoint-minutes`.
    """
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    limits = list(_deadlines(owner or {}))
    if spec.get("maximumExecutionTimeSeconds") is not None:
        past = status.get("accumulatedPastExecutionTimeSeconds") or 0
        limits.append(max(0, spec["maximumExecutionTimeSeconds"] - past))
    reference = spec.get("priorityClassRef") or {}
    return Run(
        limit=timedelta(seconds=min(limits)) if limits else None,
        interval=_interval((owner or {}).get("metadata") or {}),
        # What has no class has the priority of this one.
        priority=str(reference.get("name") or "default"),
    )


def _deadlines(owner: Object) -> Sequence[int]:
    """How long the Jobs of an owner may run, none when one of them may run for ever."""
    spec = owner.get("spec") or {}
    if owner.get("kind") == "JobSet":
        jobs = [row["template"].get("spec") or {} for row in spec.get("replicatedJobs") or ()]
        found = [job["activeDeadlineSeconds"] for job in jobs if "activeDeadlineSeconds" in job]
        return [max(found)] if found and len(found) == len(jobs) else []
    return [spec["activeDeadlineSeconds"]] if spec.get("activeDeadlineSeconds") is not None else []


def _interval(metadata: Object) -> timedelta | None:
    notes = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    try:
        minutes = float(notes.get(CHECKPOINT_NOTE, 0))
    except ValueError:
        return None
    # Neither nan nor a negative number is an interval.
    return timedelta(minutes=minutes) if 0 < minutes < 100_000 else None


def admit(run: Run, period: Period | None, now: datetime) -> Verdict:
    """Whether a job that has its quota starts: it ends in time, or loses little when it is stopped."""
    if period is None:
        return Verdict(
            welcome=False,
            words="the capacity of this pool has ended, and no more of it is to come",
            again=LONGEST,
        )
    if now < period.opens:
        return Verdict(
            welcome=False, words=f"the pool opens at {_utc(period.opens)}", again=_again(period.opens - now)
        )
    if period.closes is None:
        return Verdict(welcome=True, words="no hours hold its class")
    left, closes = period.closes - now, _utc(period.closes)
    if run.limit is not None and run.limit <= left:
        return Verdict(welcome=True, words=f"it ends before the pool closes at {closes}")
    if run.interval is not None and START + run.interval <= left:
        return Verdict(welcome=True, words=f"it checkpoints, and is stopped when the pool closes at {closes}")
    return Verdict(welcome=False, words=f"the pool closes at {closes}: {_too_long(run)}", again=_again(left))


def keep(period: Period | None, now: datetime) -> Verdict | None:
    """Whether a job that runs is stopped: its pool has closed. None: it goes on.

    It is stopped as Kueue stops any job: its pods have their grace period for a last checkpoint.
    """
    if period is not None and period.opens <= now:
        return None
    if period is None:
        return Verdict(welcome=False, words="the capacity of this pool ends now", again=LONGEST)
    words = f"the pool has closed, and opens at {_utc(period.opens)}"
    return Verdict(welcome=False, words=words, again=_again(period.opens - now))


def _too_long(run: Run) -> str:
    if run.limit is None and run.interval is None:
        return (
            "the job says neither how long it takes (label kueue.x-k8s.io/max-exec-time-seconds, or "
            f"activeDeadlineSeconds) nor how often it checkpoints (annotation {CHECKPOINT_NOTE})"
        )
    takes = [f"may take {_hours(run.limit)}"] if run.limit is not None else []
    saves = [f"checkpoints after {_hours(START + run.interval)} at first"] if run.interval is not None else []
    return f"the job {' and '.join(takes + saves)}"


def _again(wait: timedelta) -> timedelta:
    return min(max(wait, _SHORTEST), LONGEST)


def _hours(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
