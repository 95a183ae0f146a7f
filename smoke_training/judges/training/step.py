"""Judges of the training step: scaling efficiency and stragglers (pure)."""

import math
import statistics
from dataclasses import dataclass, replace

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import Collective, sweep_of
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import World
from smoke_training.formulae import overlap
from smoke_training.formulae.bandwidth import ALL_REDUCE
from smoke_training.judges.common import finite, host_of, next_step
from smoke_training.judges.training import causes
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import estimators, noise, scaling
from smoke_training.statistics import straggler as rule
from smoke_training.statistics.medians import warm_up
from smoke_training.statistics.scaling import Drift
from smoke_training.statistics.straggler import LOOKS, NEGLIGIBLE_SLOWDOWN, RankScore

EFFICIENCY_REMEDIES = {
    "rank": "Replace or inspect node {node}, then run the validation again.",
    "stack": "Check that the fabric is in use and compare the all-reduce figures with the expected ones.",
}
STRAGGLER_REMEDIES = {
    Cause.QUOTA: "Raise the CPU limit of the pods on node {node}, then run the validation again.",
    Cause.CLOCK: "Check power and cooling of node {node} (nvidia-smi -q -d PERFORMANCE), or replace it.",
    Cause.NOT_RUNNING: "Find what stops or blocks processes on node {node}, or replace it.",
    "": "Replace or inspect node {node}, then run the validation again.",
}


def reference(plan: Plan, training: Training, sweep: Collective | None) -> tuple[Expected, float]:
    """Return the expected efficiency, and the efficiency below which a fault is proven.

    On accelerators what the run's own all-reduce allows at the sizes of its buckets; without it no fault is
    proven. Over gloo the plan's minimum: its ranks and their communication share CPUs.
    """
    declared = Expected(value=1.0, kind="declared", source=PLAN, floor=plan.min_scaling_efficiency)
    if training.backend != "nccl":
        return declared, plan.min_scaling_efficiency
    if sweep is None or not sweep.sizes:
        return replace(declared, reason="no all-reduce was measured in this run"), 0.0
    times = zip(sweep.sizes, sweep.seconds, strict=True)
    measured = [(size, statistics.median(row[warm_up(row) :])) for size, row in times]
    compute = statistics.median(max(column) for column in zip(*training.compute, strict=True))
    buckets = training.buckets or overlap.even_buckets(training.gradient_bytes)
    limits = overlap.allowed(compute, buckets, measured)
    text = f"all-reduce of this run at {max(buckets)} bytes and less, half of what can overlap with the step"
    return Expected(value=limits.best, kind="derived", source=text, floor=limits.floor), limits.line


def scaling_efficiency(plan: Plan, found: Evidence) -> Check:
    """Judge the co-loaded efficiency against its reference; a slow rank becomes the culprit."""
    training, cluster, sweep = found.need(Training), found.need(World), sweep_of(found, ALL_REDUCE)
    result, status = scaling.efficiency(training), efficiency_status(plan, training, sweep)
    expected, line = reference(plan, training, sweep)
    floor = expected.floor or 0.0
    culprits = _straggling(plan, training).culprits(cluster) if status is not Verdict.PASS else ()
    if status is Verdict.FAIL and not culprits:
        text = f"all ranks compute alike, yet {1 - result.value:.0%} of a step waits for gradients"
        cause, score = Cause.EXPOSED_COMMUNICATION, result.value
        culprits = (Culprit("stack", "communication", cause, (text,), score=score, ci=result.ci95),)
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
        expected=expected,
        zone=(line, floor) if line < floor else None,
        noise=disturbance(training),
        culprits=culprits,
        message=f"{result.value:.2f} (expected >= {floor:.2f})"
        + (f"; {expected.reason}" if expected.reason else ""),
        next_action=next_step(status, culprits, EFFICIENCY_REMEDIES),
    )


@dataclass(frozen=True)
class _Straggling:
    """Result of the straggler rule, with noise ladder and drift applied."""

    status: Verdict
    scores: tuple[RankScore, ...]
    accused: tuple[tuple[RankScore, causes.SlownessCause], ...]
    drifts: tuple[Drift, ...]

    def culprits(self, cluster: World) -> tuple[Culprit, ...]:
        return tuple(
            Culprit(
                "rank",
                str(score.rank),
                finding.cause,
                finding.evidence,
                node=host_of(score.rank, cluster),
                score=score.value,
                ci=finite(*score.ci95),
            )
            for score, finding in self.accused
        )


def _straggling(plan: Plan, training: Training) -> _Straggling:
    """Judge: FAIL needs one accused rank whose slowness a noisy host cannot explain.

    PASS needs every rank to have stayed within the limit since it last changed its speed: a rank that became
    slow in mid-run is sampled further, and undecided in the end, not averaged away.
    """
    finding = rule.judge(scaling.own_compute(training), plan.max_straggler_slowdown)
    judged = tuple((score, causes.of_rank(training, score)) for score in finding.accused)
    firm = tuple(pair for pair in judged if pair[1].cause is not Cause.NOISY_HOST)
    drifts = tuple(scaling.drifts(training))
    status = finding.decision
    if status is Verdict.FAIL and not firm:
        status = Verdict.INCONCLUSIVE
    for drift in drifts:
        if status is Verdict.PASS and drift.rank is not None and drift.ratio > 1:
            since = scaling.slowdown_since(training, drift.rank, drift.iteration)
            status = Verdict.INCONCLUSIVE if since >= plan.max_straggler_slowdown else status
    return _Straggling(status, finding.scores, firm or judged, drifts)


def straggler(plan: Plan, found: Evidence) -> Check:
    """Check that no rank computes slower than its peers."""
    training, cluster = found.need(Training), found.need(World)
    result = _straggling(plan, training)
    worst = result.accused[0][0] if result.accused else max(result.scores, key=lambda s: s.value)
    culprits = result.culprits(cluster)
    return Check(
        status=result.status,
        measured=_slowdown(training, result, worst),
        expected=Expected(value=1.0, kind="declared", source=PLAN, floor=plan.max_straggler_slowdown),
        zone=(NEGLIGIBLE_SLOWDOWN, plan.max_straggler_slowdown),
        noise=disturbance(training),
        culprits=culprits,
        message=_straggler_message(result, worst, plan),
        next_action=next_step(result.status, culprits, STRAGGLER_REMEDIES),
    )


def _slowdown(training: Training, result: _Straggling, worst: RankScore) -> Measured:
    ranks = len(result.scores)
    return Measured(
        value=worst.value,
        unit="x",
        n=worst.blocks,
        ci=finite(*worst.ci95),
        spread=noise.relative_spread(training.compute),
        estimator=f"20 % trimmed mean over blocks of leave-one-out log ratios ({worst.statistic} of 10)",
        detail={
            "ranks": [
                {
                    "rank": score.rank,
                    "slowdown": score.value,
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


def _straggler_message(result: _Straggling, worst: RankScore, plan: Plan) -> str:
    figure = f"rank {worst.rank} computes {worst.value:.2f}x slower than its peers"
    if result.status is Verdict.FAIL:
        return f"{figure} (tolerated: {plan.max_straggler_slowdown:.2f}x)" + _drift_text(result)
    if result.status is Verdict.PASS:
        return f"slowest: {figure}, within {plan.max_straggler_slowdown:.2f}x" + _drift_text(result)
    if result.accused:
        return f"{figure}, on a host too noisy to find the cause: {result.accused[0][1].evidence[-1]}"
    text = f"undecided after all samples: {figure}, interval {worst.low:.2f} .. {worst.high:.2f}"
    return text + _drift_text(result)


def _drift_text(result: _Straggling) -> str:
    """Return the largest change inside the run, for the end of a message."""
    if not result.drifts:
        return ""
    drift = max(result.drifts, key=lambda item: abs(math.log(item.ratio)))
    who = "all ranks" if drift.rank is None else f"rank {drift.rank}"
    return f"; drift: {who} took {drift.ratio:.2f}x as long from iteration {drift.iteration} on"


def weak_scaling(_plan: Plan, found: Evidence) -> Check:
    """T(1)/T(N), reported and never gated."""
    training = found.need(Training)
    value = scaling.weak_scaling(training)
    return Check.reported(
        f"T(1)/T(N) = {value:.2f}, reported for comparison",
        "ranks of one machine share caches and memory bandwidth",
        Measured(value=value, unit="ratio", n=len(training.alone), estimator="ratio of medians"),
    )


def disturbance(training: Training) -> dict[str, float | None]:
    """Return noise figures of the machines during the timed steps; the worst rank of each."""
    return {
        "mad_rel": noise.relative_spread(training.compute),
        "null_mad_rel": noise.relative_spread(training.spin),
        "queue_share": noise.queue_share(training.compute, training.compute_queue),
        **noise.figures(training.windows),
    }


def statuses(plan: Plan, training: Training, sweep: Collective | None = None) -> tuple[Verdict, Verdict]:
    """Return the current verdicts on efficiency and on stragglers; `sweep` is the run's all-reduce."""
    return efficiency_status(plan, training, sweep), _straggling(plan, training).status


def efficiency_status(plan: Plan, training: Training, sweep: Collective | None) -> Verdict:
    """Return the current verdict on efficiency.

    Lost efficiency that no slow rank explains may be time waiting for CPUs: on such a host the verdict is
    INCONCLUSIVE. The same if the slow rank is on a host that is too noisy to find the cause.
    """
    result, (expected, line) = scaling.efficiency(training), reference(plan, training, sweep)
    if result.high >= line:
        return Verdict.PASS if result.low >= (expected.floor or 0.0) else Verdict.INCONCLUSIVE
    straggling = _straggling(plan, training)
    if straggling.accused:
        return Verdict.FAIL if straggling.status is Verdict.FAIL else Verdict.INCONCLUSIVE
    waiting = noise.queue_share(training.compute, training.compute_queue) or 0.0
    waited = waiting > noise.QUEUE_LIMIT and training.backend != "nccl"
    return Verdict.INCONCLUSIVE if waited or causes.unfit(training) is not None else Verdict.FAIL


def excused(plan: Plan, training: Training) -> bool:
    """Report whether noise kept a figure of the training step from being a fault."""
    if causes.unfit(training) is None:
        return False
    straggling = _straggling(plan, training)
    if straggling.accused:
        return straggling.status is Verdict.INCONCLUSIVE
    # Accelerators are not excused, so this is about the plan's minimum.
    return scaling.efficiency(training).high < plan.min_scaling_efficiency
