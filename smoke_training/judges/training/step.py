"""Judges of the training step: scaling efficiency and stragglers (pure)."""

import math
from dataclasses import dataclass

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import World
from smoke_training.judges.common import RUN_AGAIN, against_floor, finite, host_of
from smoke_training.judges.training import causes
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import estimators, noise, scaling
from smoke_training.statistics.scaling import Drift
from smoke_training.statistics.straggler import LOOKS, NEGLIGIBLE_SLOWDOWN, Score

NOISY_QUEUE_SHARE = 0.10  # of compute time spent waiting for CPUs held by others; quiet hosts stay below 0.01


def scaling_efficiency(plan: Plan, found: Evidence) -> Check | None:
    """The co-loaded efficiency against the plan's minimum, with the slow rank as culprit if there is one."""
    training, cluster = found.of(Training), found.of(World)
    if training is None or cluster is None:
        return None
    result = scaling.efficiency(training)
    status = efficiency_status(plan, training)
    culprits = _straggling(plan, training).culprits(cluster)
    if status is Verdict.FAIL and not culprits:
        exposed = 1 - result.value
        culprits = (
            Culprit(
                kind="stack",
                id="communication",
                score=result.value,
                ci=result.ci95,
                cause=Cause.EXPOSED_COMMUNICATION,
                evidence=(f"all ranks compute alike, yet {exposed:.0%} of a step waits for gradients",),
            ),
        )
    return Check(
        status=status,
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
                "fail_alpha": estimators.decision_alpha(looks=LOOKS),
            },
        ),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=plan.min_scaling_efficiency),
        noise=disturbance(training),
        culprits=culprits if status is not Verdict.PASS else (),
        message=f"{result.value:.2f} (expected >= {plan.min_scaling_efficiency:.2f})",
        next_action=_efficiency_action(status, culprits),
    )


def _efficiency_action(status: Verdict, culprits: tuple[Culprit, ...]) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is Verdict.INCONCLUSIVE:
        return RUN_AGAIN
    if culprits[0].kind == "rank":
        return f"Replace or inspect node {culprits[0].node}, then run the validation again."
    return "Check that the fabric is in use and compare the all-reduce figures with the expected ones."


@dataclass(frozen=True)
class _Straggling:
    """The straggler rule's answer, and what the noise ladder and drift make of it."""

    status: Verdict
    scores: tuple[Score, ...]
    accused: tuple[tuple[Score, causes.Finding], ...]
    drifts: tuple[Drift, ...]

    def culprits(self, cluster: World) -> tuple[Culprit, ...]:
        return tuple(_culprit(score, finding, cluster) for score, finding in self.accused)


def _straggling(plan: Plan, training: Training) -> _Straggling:
    """FAIL needs one accused rank whose cause a noisy host cannot explain.

    PASS needs every rank to have stayed within the limit since it last changed its speed: a rank that became
    slow in mid-run is sampled further, and undecided in the end, not averaged away.
    """
    finding = scaling.straggler_finding(training, plan.max_straggler_slowdown)
    judged = tuple((score, causes.of_rank(training, score)) for score in finding.accused)
    firm = tuple(pair for pair in judged if pair[1].cause is not Cause.NOISY_HOST)
    drifts = tuple(scaling.drifts(training))
    status = finding.decision
    if status is Verdict.FAIL and not firm:
        status = Verdict.INCONCLUSIVE
    late = [drift for drift in drifts if drift.rank is not None and drift.ratio > 1]
    if status is Verdict.PASS and any(_slow_since(drift, training, plan) for drift in late):
        status = Verdict.INCONCLUSIVE
    return _Straggling(status, finding.scores, firm or judged, drifts)


def _slow_since(drift: Drift, training: Training, plan: Plan) -> bool:
    assert drift.rank is not None
    return scaling.slowdown_since(training, drift.rank, drift.iteration) >= plan.max_straggler_slowdown


def straggler(plan: Plan, found: Evidence) -> Check | None:
    """No rank computes slower than its peers."""
    training, cluster = found.of(Training), found.of(World)
    if training is None or cluster is None:
        return None
    result = _straggling(plan, training)
    worst = result.accused[0][0] if result.accused else max(result.scores, key=lambda s: s.slowdown)
    return Check(
        status=result.status,
        measured=_slowdown(training, result, worst),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=plan.max_straggler_slowdown),
        zone=(NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
        noise=disturbance(training),
        culprits=result.culprits(cluster),
        message=_straggler_message(result, worst, plan),
        next_action=_straggler_action(result, worst, cluster),
    )


def _slowdown(training: Training, result: _Straggling, worst: Score) -> Measured:
    ranks = len(result.scores)
    return Measured(
        value=worst.slowdown,
        unit="x",
        n=worst.blocks,
        ci=finite(*worst.ci95),
        spread=noise.relative_spread(training.compute),
        estimator=f"20 % trimmed mean over blocks of leave-one-out log ratios ({worst.statistic} of 10)",
        detail={
            "ranks": [
                {
                    "rank": score.rank,
                    "slowdown": score.slowdown,
                    "ci95": list(score.ci95),
                    "decides": [score.low, score.high if math.isfinite(score.high) else None],
                }
                for score in result.scores
            ],
            "iterations": len(training.compute[0]),
            "drift": [
                {"rank": drift.rank, "iteration": drift.iteration, "ratio": drift.ratio}
                for drift in result.drifts
            ],
            "fail_alpha": estimators.decision_alpha(comparisons=2 * ranks, looks=LOOKS),
            "pass_alpha": estimators.ACQUIT_ALPHA,
        },
    )


def _straggler_message(result: _Straggling, worst: Score, plan: Plan) -> str:
    figure = f"rank {worst.rank} computes {worst.slowdown:.2f}x slower than its peers"
    if result.status is Verdict.FAIL:
        return f"{figure} (tolerated: {plan.max_straggler_slowdown:.2f}x)" + _drift_text(result)
    if result.status is Verdict.PASS:
        return f"slowest: {figure}, within {plan.max_straggler_slowdown:.2f}x" + _drift_text(result)
    if result.accused:
        return f"{figure}, on a host too noisy to say why: {result.accused[0][1].evidence[-1]}"
    text = f"undecided after all samples: {figure}, interval {worst.low:.2f} .. {worst.high:.2f}"
    return text + _drift_text(result)


def _drift_text(result: _Straggling) -> str:
    """The largest change inside the run, for the end of a message."""
    if not result.drifts:
        return ""
    drift = max(result.drifts, key=lambda item: abs(math.log(item.ratio)))
    who = "all ranks" if drift.rank is None else f"rank {drift.rank}"
    return f"; drift: {who} took {drift.ratio:.2f}x as long from iteration {drift.iteration} on"


def _straggler_action(result: _Straggling, worst: Score, cluster: World) -> str | None:
    if result.status is Verdict.PASS:
        return None
    if result.status is Verdict.INCONCLUSIVE:
        return RUN_AGAIN
    host = host_of(worst.rank, cluster)
    actions = {
        Cause.QUOTA: f"Raise the CPU limit of the pods on node {host}, then run the validation again.",
        Cause.CLOCK: f"Check power and cooling of node {host} (nvidia-smi -q -d PERFORMANCE), or replace it.",
        Cause.NOT_RUNNING: f"Find what stops or blocks processes on node {host}, or replace it.",
    }
    plain = f"Replace or inspect node {host}, then run the validation again."
    return actions.get(result.accused[0][1].cause, plain)


def weak_scaling(_plan: Plan, found: Evidence) -> Check | None:
    """T(1)/T(N), reported and never gated."""
    training = found.of(Training)
    if training is None:
        return None
    value = scaling.weak_scaling(training)
    return Check(
        status=Verdict.SKIPPED,
        measured=Measured(value=value, unit="ratio", n=len(training.alone), estimator="ratio of medians"),
        expected=Expected.unknown(
            "ranks of one machine share caches and memory bandwidth; reported, not judged"
        ),
        message=f"T(1)/T(N) = {value:.2f}, reported for comparison",
    )


def disturbance(training: Training) -> dict[str, float | None]:
    """How quiet the machines were while the step was timed; the worst rank of each figure."""
    periods = noise.worst([_float(window.throttled_periods) for window in training.windows])
    return {
        "mad_rel": noise.relative_spread(training.compute),
        "null_mad_rel": noise.relative_spread(training.spin),
        "queue_share": noise.queue_share(training.compute, training.compute_queue),
        "steal": noise.worst([window.steal_share for window in training.windows]),
        "cpu_pressure": noise.worst([window.cpu_pressure for window in training.windows]),
        "throttled": periods,
    }


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _culprit(score: Score, finding: causes.Finding, cluster: World) -> Culprit:
    return Culprit(
        kind="rank",
        id=str(score.rank),
        node=host_of(score.rank, cluster),
        score=score.slowdown,
        ci=finite(*score.ci95),
        cause=finding.cause,
        evidence=finding.evidence,
    )


def statuses(plan: Plan, training: Training) -> tuple[Verdict, Verdict]:
    """What the checks of efficiency and of stragglers would say now."""
    return efficiency_status(plan, training), straggler_status(plan, training)


def straggler_status(plan: Plan, training: Training) -> Verdict:
    """What the straggler check would say now."""
    return _straggling(plan, training).status


def efficiency_status(plan: Plan, training: Training) -> Verdict:
    """What the efficiency check would say now.

    Lost efficiency that no slow rank explains may as well be waiting for CPUs that others hold: on such a
    host the answer is INCONCLUSIVE, with the share as its number. The same where the slow rank is
    itself in doubt.
    """
    result = scaling.efficiency(training)
    status = against_floor(result.low, result.high, plan.min_scaling_efficiency)
    if status is not Verdict.FAIL:
        return status
    straggling = _straggling(plan, training)
    if straggling.accused:
        return Verdict.FAIL if straggling.status is Verdict.FAIL else Verdict.INCONCLUSIVE
    waiting = noise.queue_share(training.compute, training.compute_queue) or 0.0
    noisy = waiting > NOISY_QUEUE_SHARE or causes.unfit(training) is not None
    return Verdict.INCONCLUSIVE if noisy else Verdict.FAIL
