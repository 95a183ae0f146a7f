"""Judges of the training step: scaling efficiency and stragglers (pure)."""

import math
import statistics

from smoke_training import scaling
from smoke_training.estimators import median_absolute_deviation
from smoke_training.evidence import Evidence, Training, World
from smoke_training.judges.common import PLAN, against_floor, finite, host_of
from smoke_training.model import Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.straggler import NEGLIGIBLE_SLOWDOWN, Decision, Score

NOISY_QUEUE_SHARE = 0.10  # of compute time spent waiting for CPUs held by others; quiet hosts stay below 0.01


def scaling_efficiency(plan: Plan, found: Evidence) -> Check | None:
    """The co-loaded efficiency against the plan's minimum, with the slow rank as culprit if there is one."""
    if found.training is None or found.world is None:
        return None
    training, cluster = found.training, found.world
    result = scaling.efficiency(training)
    status = efficiency_status(plan, training)
    accused = scaling.straggler_finding(training, plan.max_straggler_slowdown).accused
    culprits = tuple(_culprit(score, training, cluster) for score in accused)
    if status is Verdict.FAIL and not culprits:
        exposed = 1 - result.value
        culprits = (
            Culprit(
                kind="stack",
                id="communication",
                node=None,
                score=result.value,
                ci=result.ci95,
                cause="exposed_communication",
                evidence=(f"all ranks compute alike, yet {exposed:.0%} of a step waits for gradients",),
            ),
        )
    return Check(
        id="training.scaling_efficiency",
        status=status,
        required=True,
        measured=Measured(
            value=result.value,
            unit="ratio",
            n=result.blocks,
            ci=finite(*result.ci95),
            estimator="20 % trimmed mean over block pairs of log T_nocomm(N)/T(N)",
            detail={
                "communication": result.communication,
                "balance": result.balance,
                "gradient_bytes": training.gradient_bytes,
                "parameters": training.parameters,
                "tokens_per_step": training.tokens_per_step,
            },
        ),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=plan.min_scaling_efficiency),
        noise=noise(training),
        culprits=culprits if status is not Verdict.PASS else (),
        message=f"{result.value:.2f} (expected >= {plan.min_scaling_efficiency:.2f})",
        next_action=_efficiency_action(status, culprits),
    )


def _efficiency_action(status: Verdict, culprits: tuple[Culprit, ...]) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is Verdict.INCONCLUSIVE:
        return "Run again when the machines are quieter."
    if culprits[0].kind == "rank":
        return f"Replace or inspect node {culprits[0].node}, then run the validation again."
    return "Check that the fabric is in use and compare the all-reduce figures with the expected ones."


def straggler(plan: Plan, found: Evidence) -> Check | None:
    """No rank computes slower than its peers."""
    if found.training is None or found.world is None:
        return None
    training, cluster = found.training, found.world
    finding = scaling.straggler_finding(training, plan.max_straggler_slowdown)
    worst = finding.accused[0] if finding.accused else max(finding.scores, key=lambda s: s.slowdown)
    status = _status(finding.decision)
    scores = [
        {"rank": s.rank, "slowdown": s.slowdown, "ci95": list(s.ci95), "decides": [s.low, _null_inf(s.high)]}
        for s in finding.scores
    ]
    sigma = _relative_spread(training)
    return Check(
        id="training.straggler",
        status=status,
        required=True,
        measured=Measured(
            value=worst.slowdown,
            unit="x",
            n=worst.blocks,
            ci=finite(*worst.ci95),
            spread=sigma,
            estimator=f"20 % trimmed mean over blocks of leave-one-out log ratios ({worst.statistic} of 10)",
            detail={"ranks": scores, "iterations": len(training.compute[0])},
        ),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=plan.max_straggler_slowdown),
        zone=(NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
        noise=noise(training),
        culprits=tuple(_culprit(score, training, cluster) for score in finding.accused),
        message=_straggler_message(status, worst, plan),
        next_action=None if status is Verdict.PASS else _straggler_action(status, worst, cluster),
    )


def _straggler_message(status: Verdict, worst: Score, plan: Plan) -> str:
    figure = f"rank {worst.rank} computes {worst.slowdown:.2f}x slower than its peers"
    if status is Verdict.FAIL:
        return f"{figure} (tolerated: {plan.max_straggler_slowdown:.2f}x)"
    if status is Verdict.PASS:
        return f"slowest: {figure}, within {plan.max_straggler_slowdown:.2f}x"
    low, high = worst.low, worst.high
    return f"undecided after all samples: {figure}, interval {low:.2f} .. {high:.2f}"


def _straggler_action(status: Verdict, worst: Score, cluster: World) -> str:
    if status is Verdict.INCONCLUSIVE:
        return "Run again when the machines are quieter."
    return f"Replace or inspect node {host_of(worst.rank, cluster)}, then run the validation again."


def weak_scaling(_plan: Plan, found: Evidence) -> Check | None:
    """T(1)/T(N), reported and never gated."""
    if found.training is None:
        return None
    training = found.training
    value = scaling.weak_scaling(training)
    return Check(
        id="training.weak_scaling",
        status=Verdict.SKIPPED,
        required=False,
        measured=Measured(value=value, unit="ratio", n=len(training.alone), estimator="ratio of medians"),
        expected=Expected(
            value=None,
            kind="unknown",
            source=PLAN,
            reason="ranks of one machine share caches and memory bandwidth; reported, not judged",
        ),
        message=f"T(1)/T(N) = {value:.2f}, reported for comparison",
    )


def noise(found: Training) -> dict[str, float | None]:
    """How quiet the machines were while the step was timed."""
    throttled = None if found.throttled_periods is None else float(found.throttled_periods)
    return {
        "mad_rel": _relative_spread(found),
        "queue_share": scaling.queue_share(found),
        "steal": found.steal_share,
        "throttled": throttled,
    }


def _relative_spread(found: Training) -> float:
    return max(median_absolute_deviation(row) / statistics.median(row) for row in found.compute)


def _culprit(score: Score, found: Training, cluster: World) -> Culprit:
    cpu = scaling.cpu_slowdown(found, score.rank)
    share = scaling.queue_share(found)
    if found.throttled_periods:
        cause = "cpu_quota"
    elif cpu is not None and cpu - 1 < (score.slowdown - 1) / 2:
        cause = "not_running"  # most of the excess is time in which it did not run: stopped, or blocked
    else:
        cause = "slow_compute"
    evidence = [f"wall time {score.slowdown:.2f}x its peers' over {score.blocks} blocks of 10 steps"]
    evidence.append("CPU time: not available" if cpu is None else f"CPU time {cpu:.2f}x its peers'")
    if found.throttled_periods:
        evidence.append(f"its CPU quota was hit in {found.throttled_periods} periods")
    if share is not None:
        evidence.append(f"at most {share:.0%} of any rank's time was spent waiting for a CPU held by others")
    return Culprit(
        kind="rank",
        id=str(score.rank),
        node=host_of(score.rank, cluster),
        score=score.slowdown,
        ci=finite(*score.ci95),
        cause=cause,
        evidence=tuple(evidence),
    )


def straggler_status(plan: Plan, found: Training) -> Verdict:
    """What the straggler check would say now."""
    return _status(scaling.straggler_finding(found, plan.max_straggler_slowdown).decision)


def efficiency_status(plan: Plan, found: Training) -> Verdict:
    """What the efficiency check would say now.

    Lost efficiency that no slow rank explains cannot be told from waiting for CPUs when others hold them:
    on such a host the answer is INCONCLUSIVE, with the share as its number.
    """
    result = scaling.efficiency(found)
    status = against_floor(result.low, result.high, plan.min_scaling_efficiency)
    if status is not Verdict.FAIL or scaling.straggler_finding(found, plan.max_straggler_slowdown).accused:
        return status
    return Verdict.INCONCLUSIVE if (scaling.queue_share(found) or 0.0) > NOISY_QUEUE_SHARE else status


def _status(decision: Decision) -> Verdict:
    return {
        Decision.PASS: Verdict.PASS,
        Decision.FAIL: Verdict.FAIL,
        Decision.CONTINUE: Verdict.INCONCLUSIVE,
    }[decision]


def _null_inf(value: float) -> float | None:
    return value if math.isfinite(value) else None
