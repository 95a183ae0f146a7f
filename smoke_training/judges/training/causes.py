"""Find the cause of a slow rank, and whether its machine was quiet enough to prove it (pure)."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.evidence.training import MachineWindow, Training
from smoke_training.model import Cause
from smoke_training.statistics import noise, scaling
from smoke_training.statistics.straggler import NEGLIGIBLE_SLOWDOWN, RankScore

# NVML's names of reasons that halve a clock or worse. A power cap (`sw_power_cap`) is not among them: it is
# where a healthy GPU runs under full load.
CLOCK_FAULTS = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"})
QUOTA_SHARE = 0.25  # of the rank's excess that its quota must explain, where throttled time is known
SLOW_CLOCK = 1 / NEGLIGIBLE_SLOWDOWN  # of its peers' clock: below it, the clock explains a slowdown


@dataclass(frozen=True)
class SlownessCause:
    """The cause of one rank's slowness and the sentences that support it."""

    cause: Cause
    evidence: tuple[str, ...]


def of_rank(training: Training, score: RankScore) -> SlownessCause:
    """Quota and clock leave counters; time neither run nor waited is time stopped; the rest is compute."""
    cpu = scaling.cpu_slowdown(training, score.rank)
    cause = Cause.SLOW_COMPUTE
    if quota_explains(training, score):
        cause = Cause.QUOTA
    elif slow_clock(training.windows, score.rank):
        cause = Cause.CLOCK
    elif cpu is not None and cpu - 1 < (score.value - 1) / 2:
        # Most of the excess is time in which it neither ran nor waited for a CPU: stopped, or blocked.
        cause = Cause.NOT_RUNNING
    # Time not running may be time waiting for the CPU, or stolen by a hypervisor.
    steal = noise.worst([window.steal_share for window in training.windows])
    unseen = training.compute_queue is None or (steal is not None and steal > noise.STEAL_LIMIT)
    why = unfit(training)
    if why is not None and (cause is Cause.SLOW_COMPUTE or (cause is Cause.NOT_RUNNING and unseen)):
        cause = Cause.NOISY_HOST
    return SlownessCause(cause, tuple(_evidence(training, score, cpu, why)))


def unfit(training: Training) -> str | None:
    """Return why the machines were too noisy to accuse by time alone; None if they were quiet.

    Never on accelerators: a CPU's spin is no evidence about their speed.
    """
    if training.backend == "nccl":
        return None
    return noise.unfit(noise.relative_spread(training.spin), training.windows)


def quota_explains(training: Training, score: RankScore) -> bool:
    """Report whether the rank's CPU quota explains a large part of its excess."""
    window = training.windows[score.rank]
    if not window.throttled_periods:
        return False
    if window.throttled_seconds is None:
        return True
    spent = sum(training.compute[score.rank])
    return window.throttled_seconds >= QUOTA_SHARE * spent * (1 - 1 / score.value)


def slow_clock(windows: Sequence[MachineWindow], rank: int) -> bool:
    """Report whether heat or power limits the rank's GPU clock, or it is below its peers'."""
    if CLOCK_FAULTS & set(windows[rank].clock_reasons):
        return True
    gpu, cpu = [window.gpu_mhz for window in windows], [window.cpu_mhz for window in windows]
    return _below_peers(gpu, rank) or _below_peers(cpu, rank)


def _below_peers(clocks: Sequence[float | None], rank: int) -> bool:
    own = clocks[rank]
    peers = [clock for other, clock in enumerate(clocks) if other != rank and clock is not None]
    return own is not None and bool(peers) and own < SLOW_CLOCK * statistics.median(peers)


def _evidence(training: Training, score: RankScore, cpu: float | None, why: str | None) -> list[str]:
    window = training.windows[score.rank]
    share = noise.queue_share(training.compute, training.compute_queue)
    found = [f"wall time {score.value:.2f}x its peers' over {score.blocks} blocks of 10 steps"]
    found.append("CPU time: not available" if cpu is None else f"CPU time {cpu:.2f}x its peers'")
    if window.throttled_periods:
        held = "" if window.throttled_seconds is None else f", held back for {window.throttled_seconds:.2f} s"
        found.append(f"its CPU quota was hit in {window.throttled_periods} periods{held}")
    if window.clock_reasons:
        found.append(f"its GPU clock is limited by {', '.join(window.clock_reasons)}")
    if window.gpu_mhz is not None:
        found.append(f"its GPU runs at {window.gpu_mhz:.0f} MHz")
    if share is not None:
        found.append(f"at most {share:.0%} of any rank's time was spent waiting for a CPU")
    return found if why is None else [*found, why]
