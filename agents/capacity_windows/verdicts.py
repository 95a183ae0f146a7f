"""Decide which jobs a pool with windows admits and when it stops them; pure, standard library only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .windows import Period

Object = Mapping[str, Any]

CHECKPOINT_NOTE = "trainstack.dev/checkpoint-minutes"
# Time within which the pods of a job must start in the queue (`kueue_values.PODS_READY_TIMEOUT`).
START = timedelta(minutes=20)
# Longest time until a waiting job is evaluated again, because users change its labels.
LONGEST = timedelta(minutes=10)
_SHORTEST = timedelta(seconds=10)
# Beyond every window: the API takes 63 bits of seconds, which no duration or date here can be.
_MOST_S = 10 * 365 * 86_400


@dataclass(frozen=True)
class RunLimits:
    """Declared run time and checkpoint interval of a job."""

    limit: timedelta | None
    """Longest run time after admission; None: not declared."""
    interval: timedelta | None
    """From one checkpoint to the next; None: no checkpoints declared."""
    priority: str
    """Name of its priority class."""


@dataclass(frozen=True)
class AdmissionVerdict:
    """Admission of a job to the pool now, with the reason."""

    welcome: bool
    words: str
    again: timedelta | None = None
    """Time until a deactivated job is evaluated again."""


def run_limits(workload: Object, owner: Object | None) -> RunLimits:
    """Read the run time and checkpoint interval from a Workload and its owner.

    The limit is the shorter one of the queue's own (label `kueue.x-k8s.io/max-exec-time-seconds`, which
    counts earlier attempts) and the Job's `activeDeadlineSeconds`, which starts anew; every Job of a JobSet
    must have one. The interval is the annotation or label `trainstack.dev/checkpoint-minutes`.
    """
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    limits = list(_deadlines(owner or {}))
    if spec.get("maximumExecutionTimeSeconds") is not None:
        past = status.get("accumulatedPastExecutionTimeSeconds") or 0
        limits.append(max(0, spec["maximumExecutionTimeSeconds"] - past))
    reference = spec.get("priorityClassRef") or {}
    return RunLimits(
        limit=timedelta(seconds=min(*limits, _MOST_S)) if limits else None,
        interval=_interval((owner or {}).get("metadata") or {}),
        # A Workload without a class has the priority of this one.
        priority=str(reference.get("name") or "default"),
    )


def _deadlines(owner: Object) -> Sequence[int]:
    """The time limit of an owner's Jobs; empty when one of them has none."""
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
    # Neither nan nor a negative number is valid.
    return timedelta(minutes=minutes) if 0 < minutes < 100_000 else None


def admit(run: RunLimits, period: Period | None, now: datetime) -> AdmissionVerdict:
    """Decide whether a job with quota starts: it ends in time, or checkpoints often enough to be stopped."""
    if period is None:
        return _deny("the capacity of this pool has ended, and no more is scheduled", LONGEST)
    if now < period.opens:
        return _deny(f"the pool opens at {_utc(period.opens)}", period.opens - now)
    if period.closes is None:
        return AdmissionVerdict(welcome=True, words="no hours apply to its class")
    left, closes = period.closes - now, _utc(period.closes)
    if run.limit is not None and run.limit <= left:
        return AdmissionVerdict(welcome=True, words=f"it ends before the pool closes at {closes}")
    if run.interval is not None and START + run.interval <= left:
        reason = f"it checkpoints and is stopped when the pool closes at {closes}"
        return AdmissionVerdict(welcome=True, words=reason)
    return _deny(f"the pool closes at {closes}: {_too_long(run)}", left)


def keep(period: Period | None, now: datetime) -> AdmissionVerdict | None:
    """Return the verdict that stops a running job when its pool has closed; None: it continues.

    It is stopped as Kueue stops all jobs: its pods have their grace period for a last checkpoint.
    """
    if period is None:
        return _deny("the capacity of this pool ends now", LONGEST)
    if period.opens <= now:
        return None
    return _deny(f"the pool has closed, and opens at {_utc(period.opens)}", period.opens - now)


def _deny(reason: str, wait: timedelta) -> AdmissionVerdict:
    return AdmissionVerdict(welcome=False, words=reason, again=min(max(wait, _SHORTEST), LONGEST))


def _too_long(run: RunLimits) -> str:
    if run.limit is None and run.interval is None:
        return (
            "the job declares neither its run time (label kueue.x-k8s.io/max-exec-time-seconds, or "
            f"activeDeadlineSeconds) nor its checkpoint interval (annotation {CHECKPOINT_NOTE})"
        )
    takes = [f"may take {_hours(run.limit)}"] if run.limit is not None else []
    saves = [f"checkpoints after {_hours(START + run.interval)} at first"] if run.interval is not None else []
    return f"the job {' and '.join(takes + saves)}"


def _hours(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
