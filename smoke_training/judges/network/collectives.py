"""Judge of the collectives' speed (pure)."""

import statistics
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.fabric import Collective, sweep_of
from smoke_training.evidence.world import World
from smoke_training.expected import lookup
from smoke_training.expected.reference import Reference, Setting, reference, setting_of
from smoke_training.expected.tables import Signature, shipped
from smoke_training.formulae.alphabeta import AlphaBeta, fit_alpha_beta
from smoke_training.formulae.bandwidth import (
    algbw_gb_s,
    busbw_gb_s,
)
from smoke_training.formulae.bounds import Shape, wire_rates
from smoke_training.judges.common import finite
from smoke_training.model import Cause, Check, Culprit, Measured, Verdict
from smoke_training.nccl import tuning as nccl_tuning
from smoke_training.plan import Plan
from smoke_training.statistics.estimators import (
    ACQUIT_ALPHA,
    decision_alpha,
    median_absolute_deviation,
)
from smoke_training.statistics.medians import LOOKS, median_interval, share_below, warm_up

BELOW_SHARE = 0.9  # of the samples: noise only slows, so a slow wire has no fast ones
NOISY_QUEUE = 0.2  # of the timed seconds: who waits for a CPU that long is not waiting for a wire
NOISY_STEAL = 0.05
ABOVE_CEILING = 1.25  # of a declared wire's bound: the bytes cannot have crossed it


def open_size(plan: Plan, setting: Setting, sweep: Collective) -> int | None:
    """The size of which more samples could still change the verdict; None when they could not."""
    against = _reference(plan, setting, sweep)
    rates = _rates(sweep, against.size, setting.ranks)
    # Under noise there is no fault to prove, and the noise does not go away by sampling.
    undecided = _status(rates, against, noisy=False) is Verdict.INCONCLUSIVE and not _noisy(sweep)
    return against.size if undecided else None


def bandwidth(name: str, plan: Plan, found: Evidence) -> Check | None:
    """Bus bandwidth of a collective at its judged size."""
    sweep, cluster = sweep_of(found, name), found.of(World)
    if sweep is None or cluster is None:
        return None
    if sweep.skipped is not None:
        return Check.skipped(sweep.skipped)
    setting = setting_of([facts.node for facts in cluster.ranks], cluster.ranks[0].backend)
    against = _reference(plan, setting, sweep)
    rates = _rates(sweep, against.size, setting.ranks)
    status = _status(rates, against, noisy=_noisy(sweep))
    centre, interval = statistics.median(rates), median_interval(rates)
    # Where the ranks waited for CPUs, gloo's rate says nothing about the wire that the plan declares; links
    # and rails are judged by themselves, with less to compute. Accelerators move their bytes without CPUs.
    starved = status is Verdict.INCONCLUSIVE and against.declared and _noisy(sweep)
    starved &= not _above(rates, against)
    return Check(
        status=status,
        required=not starved,
        measured=Measured(
            value=centre,
            unit="GB/s",
            n=len(rates),
            estimator="median of busbw, time = maximum over ranks, warm-up dropped",
            ci=finite(interval.low, interval.high),
            spread=median_absolute_deviation(rates),
            reason=None if finite(interval.low, interval.high) else "too few samples for an interval",
            detail=_detail(plan, setting, sweep, against),
        ),
        expected=against.expected,
        zone=_zone(against),
        noise={"queue_share": sweep.queue_share, "steal_share": sweep.steal_share},
        culprits=_culprits(plan, setting, name, against, centre) if status is Verdict.FAIL else (),
        message=_message(plan, setting, sweep, against, rates),
        next_action=None if status is Verdict.PASS else _next_action(rates, against, sweep),
    )


def _reference(plan: Plan, setting: Setting, sweep: Collective) -> Reference:
    largest = max(sweep.sizes)
    algorithm = nccl_tuning.bound_of(sweep.algorithms.get(str(largest)))
    return reference(shipped(), plan, setting, (sweep.name, sweep.sizes), algorithm)


def _rates(sweep: Collective, size: int, ranks: int) -> list[float]:
    """Bus bandwidths of the samples of one size without its warm-up; ValueError for one rank."""
    seconds = sweep.seconds[sweep.sizes.index(size)]
    rates = [busbw_gb_s(size, t, ranks, sweep.name) for t in seconds[warm_up(seconds) :]]
    known = [rate for rate in rates if rate is not None]
    if not known:
        raise ValueError(f"{sweep.name} of {size} bytes over {ranks} ranks has no bus bandwidth")
    return known


def _status(rates: Sequence[float], against: Reference, *, noisy: bool) -> Verdict:
    """PASS when the median reaches the floor; FAIL when it and 9 samples of 10 lie below the fault's line.

    A FAIL rests on a share of the family-wise error, a PASS on the level of acquittals. A busy machine slows
    a collective and never speeds it up: under noise there is a pass but no fault.
    """
    floor, line = against.expected.floor, against.fail_below
    if floor is None:
        return Verdict.PASS
    if _above(rates, against):
        return Verdict.INCONCLUSIVE
    if median_interval(rates, ACQUIT_ALPHA).low >= floor:
        return Verdict.PASS
    high = median_interval(rates, decision_alpha(looks=LOOKS)).high
    if line is None or noisy or high >= line or share_below(rates, line) < BELOW_SHARE:
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL


def _zone(against: Reference) -> tuple[float, float] | None:
    """The bus bandwidths, GB/s, between a fault and a pass; None where the two meet or there are none."""
    line, floor = against.fail_below, against.expected.floor
    return None if line is None or floor is None or line == floor else (line, floor)


def _above(rates: Sequence[float], against: Reference) -> bool:
    """Whether the samples outrun the wire that the plan declares."""
    if not against.declared or against.ceiling is None:
        return False
    return median_interval(rates, ACQUIT_ALPHA).low > ABOVE_CEILING * against.ceiling


def _noisy(sweep: Collective) -> bool:
    return (sweep.queue_share or 0.0) > NOISY_QUEUE or (sweep.steal_share or 0.0) > NOISY_STEAL


def _message(
    plan: Plan, setting: Setting, sweep: Collective, against: Reference, rates: Sequence[float]
) -> str:
    expected, centre = against.expected, statistics.median(rates)
    name = sweep.name.replace("_", "-")
    text = f"{name} of {against.size} bytes: {centre:.3f} GB/s busbw over {setting.ranks} ranks"
    if expected.value is None:
        return f"{text}; nothing to hold it against: {expected.reason}"
    text += f" (expected >= {expected.floor:.3f}, {expected.kind}: {expected.source})"
    if expected.reason:
        text += f"; {expected.reason}"
    if _above(rates, against):
        text += f"; faster than the declared wire's bound of {against.ceiling:.3f} GB/s"
    if _noisy(sweep) and centre < (expected.floor or 0.0):
        text += f"; the ranks waited for CPUs {sweep.queue_share or 0.0:.2f} s a second: no fault is proven"
    fault = _signature(plan, setting, sweep.name, against, centre)
    return f"{text}; reads like {fault.meaning}" if fault else text


def _next_action(rates: Sequence[float], against: Reference, sweep: Collective) -> str:
    if _above(rates, against):
        return "Correct the declared rate, or find the interface that carried the bytes (GLOO_SOCKET_IFNAME)."
    if _noisy(sweep):
        return "Run again on machines without other load: the ranks waited for CPUs."
    if against.expected.kind == "derived":
        return "Compare with an accepted run of this stack, or declare expected_busbw_gb_s in the plan."
    return "Check that the fabric's plugin is in use (NCCL_DEBUG=INFO) and all interfaces are attached."


def _culprits(
    plan: Plan, setting: Setting, name: str, against: Reference, centre: float
) -> tuple[Culprit, ...]:
    """A slow collective accuses no node: links, rails and transport do. The figure of a known fault does."""
    fault = _signature(plan, setting, name, against, centre)
    if fault is None:
        return ()
    cause = Cause(fault.cause)
    identity = "transport" if cause is Cause.TCP_FALLBACK else "fabric"
    return (
        Culprit(
            kind="stack",
            id=identity,
            score=centre / (against.expected.value or centre),
            cause=cause,
            evidence=(f"{fault.meaning} measured {fault.value} GB/s ({fault.source.text})",),
        ),
    )


def _signature(
    plan: Plan, setting: Setting, name: str, against: Reference, centre: float
) -> Signature | None:
    if setting.shape is None or setting.backend != "nccl":
        return None
    question = lookup.Question(
        instance_type=plan.instance_type,
        fabric=plan.fabric,
        collective=name,
        shape=setting.shape,
        size_bytes=against.size,
    )
    return lookup.signature_of(shipped(), question, centre)


def _detail(plan: Plan, setting: Setting, sweep: Collective, against: Reference) -> dict[str, object]:
    rows = [_row(sweep, size, setting) for size in sweep.sizes]
    detail: dict[str, object] = {
        "collective": sweep.name,
        "size_bytes": against.size,
        "sweep": rows,
        "bounds": [
            {"algorithm": b.algorithm, "busbw_gb_s": b.value, "limit": b.limit, "complete": b.complete}
            for b in against.bounds
        ],
        "cut": sweep.cut,
    }
    detail |= _fit(sweep)
    if setting.shape is not None and setting.backend == "nccl":
        detail["liveness_floor"] = _liveness(plan, setting.shape, sweep.name, against.size)
    return detail


def _row(sweep: Collective, size: int, setting: Setting) -> dict[str, object]:
    seconds = sweep.seconds[sweep.sizes.index(size)]
    kept = seconds[warm_up(seconds) :]
    centre = statistics.median(kept)
    rate = busbw_gb_s(size, centre, setting.ranks, sweep.name)
    wires = None if setting.shape is None or rate is None else wire_rates(rate, setting.shape)
    return {
        "size_bytes": size,
        "seconds": centre,
        "n": len(kept),
        "warm_up": len(seconds) - len(kept),
        "algbw_gb_s": algbw_gb_s(size, centre),
        "busbw_gb_s": rate,
        "wire_gb_s_per_rank": wires,
        "algorithm": sweep.algorithms.get(str(size)),
    }


def _fit(sweep: Collective) -> Mapping[str, object]:
    points = [
        (s, statistics.median(t[warm_up(t) :])) for s, t in zip(sweep.sizes, sweep.seconds, strict=True)
    ]
    if len(points) < 2:
        return {}
    fit: AlphaBeta = fit_alpha_beta(points)
    return {
        "latency_us": fit.latency_s * 1e6,
        "slope_gb_s": fit.bandwidth_gb_s,
        "fit_max_relative_residual": fit.max_relative_residual,
        "robust_latency_us": fit.robust_latency_s * 1e6,
        "robust_slope_gb_s": fit.robust_bandwidth_gb_s,
        "half_size_bytes": fit.half_size_bytes,
    }


def _liveness(plan: Plan, shape: Shape, name: str, size: int) -> Mapping[str, object] | None:
    """What a check of somebody else would accept here: said, never used."""
    question = lookup.Question(
        instance_type=plan.instance_type, fabric=plan.fabric, collective=name, shape=shape, size_bytes=size
    )
    floor = lookup.floor_of(shipped(), question)
    return None if floor is None else {"busbw_gb_s": floor.value, "source": floor.source.text}
