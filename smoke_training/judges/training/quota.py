"""Judge of CPU quotas: slowdown of the ranks by throttling of their control groups (pure).

Ranks are compared with each other, so a quota that slows all of them makes no straggler. The kernel counts
it, though: seconds in which a rank neither ran nor could have run, as far as its group was throttled.
"""

import math
from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import World
from smoke_training.judges.common import host_of, next_step
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import noise
from smoke_training.statistics.straggler import NEGLIGIBLE_SLOWDOWN

REMEDIES = {"": "Raise the CPU limit of the pods, or start fewer ranks on each node; then run again."}


def quota(plan: Plan, found: Evidence) -> Check:
    """Check that no CPU quota slows training by more than a straggler may be slow."""
    training, cluster = found.need(Training), found.need(World)
    if any(window.throttled_periods is None for window in training.windows):
        return Check.skipped("Not judged: the kernel does not report how often a CPU quota was hit.")
    slowdowns = [_slowdown(training, rank) for rank in range(len(training.windows))]
    worst, most = max(slowdowns), plan.max_straggler_slowdown
    status = Verdict.PASS if worst <= NEGLIGIBLE_SLOWDOWN else Verdict.INCONCLUSIVE
    held = [rank for rank, slowdown in enumerate(slowdowns) if slowdown > most]
    if held:
        status = Verdict.FAIL
    culprits = _culprits(training, cluster, slowdowns, held)
    return Check(
        status=status,
        measured=Measured(
            value=worst,
            unit="x",
            n=len(training.compute[0]),
            estimator="worst rank: time of its compute over the same without throttled time",
            detail={"ranks": slowdowns},
        ),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=most),
        zone=(NEGLIGIBLE_SLOWDOWN, most),
        noise=noise.figures(training.windows),
        culprits=culprits,
        message=_message(training, slowdowns, held, most),
        next_action=next_step(status, culprits, REMEDIES, REMEDIES[""]),
    )


def _slowdown(training: Training, rank: int) -> float:
    """Return the ratio of a rank's compute time to the same without throttled time.

    The group's counter adds up the processors of all its ranks, so no more of it counts than the time in
    which this rank did not run.
    """
    window, wall = training.windows[rank], math.fsum(training.compute[rank])
    idle = max(0.0, wall - math.fsum(training.compute_cpu[rank]))
    throttled = idle if window.throttled_seconds is None else window.throttled_seconds
    held = min(idle, throttled) if window.throttled_periods else 0.0
    return wall / (wall - held) if held < wall else math.inf


def _culprits(
    training: Training, cluster: World, slowdowns: Sequence[float], held: Sequence[int]
) -> tuple[Culprit, ...]:
    """Accuse the throttled ranks; the stack if all are."""
    if len(held) == len(slowdowns):
        text = tuple(_text(training, rank) for rank in held[:8])
        return (Culprit("stack", "cpu quota", Cause.QUOTA, text, score=max(slowdowns)),)
    return tuple(
        Culprit(
            "rank",
            str(rank),
            Cause.QUOTA,
            (_text(training, rank),),
            node=host_of(rank, cluster),
            score=slowdowns[rank],
        )
        for rank in held
    )


def _text(training: Training, rank: int) -> str:
    window = training.windows[rank]
    spent = "" if window.throttled_seconds is None else f", for {window.throttled_seconds:.2f} s in all"
    return f"rank {rank}: its group was throttled in {window.throttled_periods} periods{spent}"


def _message(training: Training, slowdowns: Sequence[float], held: Sequence[int], most: float) -> str:
    worst = max(range(len(slowdowns)), key=slowdowns.__getitem__)
    figure = f"rank {worst} computes {slowdowns[worst]:.2f}x longer than without its CPU quota"
    if held:
        who = "all ranks are" if len(held) == len(slowdowns) else f"{len(held)} of {len(slowdowns)} ranks are"
        return f"{who} throttled by CPU quotas: {figure} (tolerated: {most:.2f}x)"
    return figure if any(window.throttled_periods for window in training.windows) else "no CPU quota was hit"
