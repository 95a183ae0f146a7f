"""What becomes of a holder of GPUs (pure): nothing without figures that prove idleness.

Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.idle_gpus.holders import Holder
from agents.idle_gpus.measures import Activity
from agents.shared.dcgm import PodKey

# A share of a minute up to this is no work. Published rules take 0 (wseaton/gpu-pruner, query.promql.j2) to 5
# and 10 % over half an hour (read 2026-11-22): the careful end, above what a driver's own checks cost.
BUSY_SHARE = 0.01
# A scrape now and then is lost; an exporter that was away for longer leaves the window unproven.
COVERAGE = 0.9
# A clock of a node may be ahead of ours; one that says tomorrow is wrong, or protects itself for ever.
_AHEAD_S = 300.0

BUSY, IDLE = "busy", "idle"
STARTING, CHECKPOINTED, UNKNOWN = "starting", "checkpointed", "unknown"
NOTHING, ANNOUNCE, TAKE_BACK, STOP = "nothing", "announce", "take back", "stop"


@dataclass(frozen=True)
class Policy:
    """When something is done. Times in seconds."""

    window_s: float
    """So long GPUs have to do nothing."""
    grace_s: float
    """So long after the announcement the holder goes on."""
    stop_jobs: bool
    """Whether jobs are stopped, too; else they are announced, and go on."""
    interval_s: float
    """A holder that wrote a checkpoint less than this ago is not touched."""
    startup_s: float
    """A holder that started less than this ago is not touched: it may be loading weights."""


@dataclass(frozen=True)
class Verdict:
    """What a holder does, and what is to be done."""

    state: str
    action: str
    stop_at: float | None = None
    """With an announcement: when it is stopped; infinite: never."""


def judge(holder: Holder, activity: Mapping[PodKey, Activity], policy: Policy, now: float) -> Verdict:
    """The verdict about a holder, from what its GPUs did until `now`."""
    state = _state(holder, activity, policy, now)
    stops = holder.interactive or policy.stop_jobs
    announced = _announced(holder)
    if state == IDLE:
        if announced is None or (stops and announced == float("inf")):
            return Verdict(state, ANNOUNCE, now + policy.grace_s if stops else float("inf"))
        return Verdict(state, STOP if stops and now >= announced else NOTHING)
    if announced is not None and state in (BUSY, CHECKPOINTED):
        return Verdict(state, TAKE_BACK)
    # Of what nobody measured nothing is said, and nothing taken back.
    return Verdict(state, NOTHING)


def last_checkpoint(holder: Holder, now: float) -> float | None:
    """The newest checkpoint that any of its pods told of; None without one that can be true."""
    told = [pod.last_checkpoint for pod in holder.pods if pod.last_checkpoint is not None]
    return max((at for at in told if at <= now + _AHEAD_S), default=None)


def _state(holder: Holder, activity: Mapping[PodKey, Activity], policy: Policy, now: float) -> str:
    measured = [activity.get((pod.namespace, pod.name)) for pod in holder.pods]
    if any(each is not None and each.busiest > BUSY_SHARE for each in measured):
        return BUSY
    if any(pod.started is None or now - pod.started < policy.startup_s for pod in holder.pods):
        return STARTING
    checkpoint = last_checkpoint(holder, now)
    if checkpoint is not None and now - checkpoint < policy.interval_s:
        return CHECKPOINTED
    for pod, each in zip(holder.pods, measured, strict=True):
        if each is None or each.gpus < pod.gpus or each.coverage < COVERAGE:
            return UNKNOWN
    return IDLE


def _announced(holder: Holder) -> float | None:
    """When it is stopped: the latest of what its pods say, and nothing while one of them says nothing."""
    said = [pod.stop_at for pod in holder.pods if pod.stop_at is not None]
    return max(said) if len(said) == len(holder.pods) else None
