"""Decide on a holder of GPUs (pure): no action without figures that prove idleness.

Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.idle_gpus.holders import Holder
from agents.idle_gpus.measures import Activity
from agents.shared.dcgm import PodKey

# Shares of a minute up to this are no work. Published rules use 0 (wseaton/gpu-pruner, query.promql.j2) to 5
# and 10 % over half an hour (read 2026-11-22); this is the careful end, above the cost of a driver's checks.
BUSY_SHARE = 0.01
# Single scrapes get lost; after a longer outage of the exporter the window is unproven.
COVERAGE = 0.9
# A node's clock may be ahead of ours; one a day ahead is wrong, or would protect the holder forever.
_AHEAD_S = 300.0

BUSY, IDLE = "busy", "idle"
STARTING, CHECKPOINTED, UNKNOWN = "starting", "checkpointed", "unknown"
NOTHING, ANNOUNCE, TAKE_BACK, STOP = "nothing", "announce", "take back", "stop"


@dataclass(frozen=True)
class IdlePolicy:
    """Thresholds of the actions. Times in seconds."""

    window_s: float
    """GPUs must be idle for this long."""
    grace_s: float
    """Time between the announcement and the stop."""
    stop_jobs: bool
    """Whether jobs are stopped too; else they are only announced."""
    interval_s: float
    """A holder with a checkpoint younger than this is protected."""
    startup_s: float
    """A holder that started more recently is protected: it may be loading weights."""

    @property
    def bound_s(self) -> float:
        """Time without any activity after which neither a start nor a checkpoint protects a holder.

        A member controls both: a program can announce checkpoints that it does not write, and it and its pods
        can end again and again. No training writes a checkpoint of new work, or starts, without using a GPU
        for so long.
        """
        return self.window_s + max(self.interval_s, self.startup_s)


@dataclass(frozen=True)
class IdleVerdict:
    """The state of a holder and the action to take."""

    state: str
    action: str
    stop_at: float | None = None
    """Of an announcement: time of the stop; infinite: never."""


def judge(
    holder: Holder,
    activity: Mapping[PodKey, Activity],
    policy: IdlePolicy,
    now: float,
    long_activity: Mapping[PodKey, Activity] | None = None,
) -> IdleVerdict:
    """The verdict on a holder, from the activity of its GPUs until `now`.

    `long_activity`: of the last `policy.bound_s`, where that is known (`is_doubtful`).
    """
    state = _state(holder, activity, policy, now)
    if is_doubtful(holder, state, policy, now) and not _has_worked(holder, long_activity or {}):
        if not _is_proven_since(holder, long_activity or {}):
            # Neither idleness is proven nor work: an announcement stays, and nothing is stopped.
            return IdleVerdict(state, NOTHING)
        state = IDLE
    stops = holder.interactive or policy.stop_jobs
    announced = _announced(holder)
    if state == IDLE:
        if announced is None or (stops and announced == float("inf")):
            return IdleVerdict(state, ANNOUNCE, now + policy.grace_s if stops else float("inf"))
        if any(pod.stop_at is None for pod in holder.pods):
            # A pod that came later puts off nothing.
            return IdleVerdict(state, ANNOUNCE, max(announced, now))
        return IdleVerdict(state, STOP if stops and now >= announced else NOTHING)
    if announced is not None and state in (BUSY, CHECKPOINTED):
        return IdleVerdict(state, TAKE_BACK)
    # Without measurements nothing is announced and nothing withdrawn.
    return IdleVerdict(state, NOTHING)


def is_doubtful(holder: Holder, state: str, policy: IdlePolicy, now: float) -> bool:
    """Return whether a holder is protected that is old enough for a proof that it does not work.

    Its age is that of its oldest pod, also of one that was replaced.
    """
    began = [pod.began for pod in (*holder.pods, *holder.gone) if pod.began is not None]
    return state in (STARTING, CHECKPOINTED) and now - min(began, default=now) >= COVERAGE * policy.bound_s


def last_checkpoint(holder: Holder, now: float) -> float | None:
    """The newest checkpoint that any of its pods reported; None without a plausible one."""
    reported = [pod.last_checkpoint for pod in holder.pods if pod.last_checkpoint is not None]
    return max((at for at in reported if at <= now + _AHEAD_S), default=None)


def _state(holder: Holder, activity: Mapping[PodKey, Activity], policy: IdlePolicy, now: float) -> str:
    measured = (activity.get((pod.namespace, pod.name)) for pod in holder.pods)
    if any(each is not None and each.busiest > BUSY_SHARE for each in measured):
        return BUSY
    if any(pod.started is None or now - pod.started < policy.startup_s for pod in holder.pods):
        return STARTING
    checkpoint = last_checkpoint(holder, now)
    if checkpoint is not None and now - checkpoint < policy.interval_s:
        return CHECKPOINTED
    return IDLE if _is_proven(holder, activity) else UNKNOWN


def _is_proven(holder: Holder, activity: Mapping[PodKey, Activity]) -> bool:
    """Return whether there are enough figures of all GPUs, and all show idleness."""
    for pod in holder.pods:
        each = activity.get((pod.namespace, pod.name))
        if each is None or each.gpus < pod.gpus or each.coverage < COVERAGE or each.busiest > BUSY_SHARE:
            return False
    return True


def _has_worked(holder: Holder, activity: Mapping[PodKey, Activity]) -> bool:
    """Return whether any of its pods worked, also one that is gone."""
    measured = (activity.get((pod.namespace, pod.name)) for pod in (*holder.pods, *holder.gone))
    return any(each is not None and each.busiest > BUSY_SHARE for each in measured)


def _is_proven_since(holder: Holder, activity: Mapping[PodKey, Activity]) -> bool:
    """Return whether there are figures of all GPUs for enough of the time, with those of pods that are gone.

    A pause without GPUs, as between two attempts of a job, is time without figures.
    """
    covered = 0.0
    # A StatefulSet gives a new pod the name of the old one, and so its figures.
    for pod in {pod.name: pod for pod in (*holder.gone, *holder.pods)}.values():
        each = activity.get((pod.namespace, pod.name))
        if each is not None and each.gpus >= pod.gpus:
            covered += pod.gpus * each.coverage
        elif pod in holder.pods:
            return False
    return covered >= COVERAGE * max(holder.most_gpus, sum(pod.gpus for pod in holder.pods))


def _announced(holder: Holder) -> float | None:
    """Time of the stop: the latest of its pods' annotations, also of pods that are gone; None without one."""
    gone = [pod.stop_at for pod in holder.gone if pod.stop_at != float("inf")]
    times = [at for at in (*gone, *(pod.stop_at for pod in holder.pods)) if at is not None]
    return max(times, default=None)
