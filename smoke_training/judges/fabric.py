"""Judges of the gang and its collectives (pure)."""

import statistics

from smoke_training.estimators import median_absolute_deviation, median_interval
from smoke_training.evidence import Collective, Evidence, World
from smoke_training.formulae import busbw_gb_s, fit_alpha_beta
from smoke_training.judges.common import PLAN, against_floor, finite
from smoke_training.model import Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

BUSBW_FLOOR = 0.90  # of the published figure; below it more than run-to-run noise is missing


def world(plan: Plan, found: Evidence) -> Check | None:
    """All ranks joined, and joined alike."""
    if found.world is None:
        return None
    cluster = found.world
    problems = []
    if len(cluster.ranks) != cluster.wanted:
        problems.append(f"{len(cluster.ranks)} ranks joined, {cluster.wanted} wanted")
    for name in ("torch", "python", "backend", "device"):
        values = sorted({str(getattr(rank, name)) for rank in cluster.ranks})
        if len(values) > 1:
            problems.append(f"{name} differs between ranks: {', '.join(values)}")
    nodes = {rank.node for rank in cluster.ranks}
    if len(nodes) != plan.nodes:
        problems.append(f"ranks run on {len(nodes)} nodes, the plan has {plan.nodes}")
    return Check(
        id="preflight.world",
        status=Verdict.FAIL if problems else Verdict.PASS,
        required=True,
        measured=Measured(value=float(len(cluster.ranks)), unit="ranks", n=1, estimator="count"),
        expected=Expected(value=float(cluster.wanted), kind="exact", source=PLAN),
        message="; ".join(problems) or f"{len(cluster.ranks)} ranks joined on {len(nodes)} nodes, all alike",
        next_action="Give every node the same image and machine type." if problems else None,
    )


def all_reduce(plan: Plan, found: Evidence) -> Check | None:
    """Bus bandwidth at the expectation's size if one applies, else at the largest size."""
    if found.collective is None or found.world is None:
        return None
    sweep, cluster = found.collective, found.world
    ranks = len(cluster.ranks)
    expected, size = _busbw_expectation(plan, sweep, cluster)
    seconds = sweep.seconds[sweep.sizes.index(size)]
    rates = [busbw_gb_s(size, t, ranks) for t in seconds]
    known = [rate for rate in rates if rate is not None]
    points = [(s, statistics.median(times)) for s, times in zip(sweep.sizes, sweep.seconds, strict=True)]
    fit = fit_alpha_beta(points)
    detail: dict[str, object] = {
        "size_bytes": size,
        "latency_us": fit.latency_s * 1e6,
        "slope_gb_s": fit.bandwidth_gb_s,
        "fit_max_relative_residual": fit.max_relative_residual,
        "sweep": [{"size_bytes": s, "seconds": t, "busbw_gb_s": busbw_gb_s(s, t, ranks)} for s, t in points],
    }
    if not known:
        measured = Measured(
            value=None,
            unit="GB/s",
            n=len(seconds),
            estimator="median",
            detail=detail,
            reason="one rank has no bus bandwidth",
        )
        return Check(
            id="collective.all_reduce",
            status=Verdict.SKIPPED,
            required=False,
            measured=measured,
            expected=expected,
            message="One rank has no bus bandwidth.",
        )
    interval = median_interval(known)
    measured = Measured(
        value=interval.estimate,
        unit="GB/s",
        n=len(known),
        estimator="median of busbw, time = maximum over ranks",
        ci=finite(interval.low, interval.high),
        spread=median_absolute_deviation(known),
        detail=detail,
    )
    status = Verdict.PASS
    if expected.floor is not None:
        status = against_floor(interval.low, interval.high, expected.floor)
    text = f"all-reduce of {size} bytes: {interval.estimate:.3f} GB/s busbw over {ranks} ranks"
    wanted = f" (expected >= {expected.floor:.3f})" if expected.floor is not None else f"; {expected.reason}"
    return Check(
        id="collective.all_reduce",
        status=status,
        required=True,
        measured=measured,
        expected=expected,
        message=text + wanted,
        next_action=None
        if status is Verdict.PASS
        else "Check that the fabric's plugin is in use (NCCL_DEBUG=INFO) and all interfaces are attached.",
    )


def _busbw_expectation(plan: Plan, found: Collective, cluster: World) -> tuple[Expected, int]:
    wanted, largest = plan.expected_busbw, max(found.sizes)
    backend = cluster.ranks[0].backend
    if wanted is None:
        reason = "no published figure for this machine type and node count"
    elif backend != "nccl":
        reason = f"the plan's figure is for nccl on accelerators, this run used {backend}"
    elif wanted.nodes != plan.nodes:
        reason = f"the plan's figure is for {wanted.nodes} nodes, this run has {plan.nodes}"
    elif wanted.size_bytes not in found.sizes:
        reason = f"the plan's figure is for {wanted.size_bytes} bytes, which this sweep did not reach"
    else:
        floor = BUSBW_FLOOR * wanted.value
        return Expected(
            value=wanted.value, kind=wanted.kind, source=wanted.source, floor=floor
        ), wanted.size_bytes
    return Expected(value=None, kind="unknown", source=PLAN, reason=reason), largest


def payload(_plan: Plan, found: Evidence) -> Check | None:
    """Exact rank-coded sums at every size."""
    if found.collective is None:
        return None
    sweep = found.collective
    wrong = sum(sweep.payload_wrong.values())
    sizes = [size for size, count in sweep.payload_wrong.items() if count]
    accused = sorted({rank for ranks in sweep.payload_suspects.values() for rank in ranks})
    culprits = tuple(
        Culprit(
            kind="rank",
            id=str(rank),
            node=None,
            score=None,
            ci=None,
            cause="corruption",
            evidence=(f"its bit is wrong in exact sums of {', '.join(sizes)} bytes",),
        )
        for rank in accused
    )
    return Check(
        id="collective.payload",
        status=Verdict.FAIL if wrong else Verdict.PASS,
        required=True,
        measured=Measured(
            value=float(wrong), unit="wrong elements", n=sweep.payload_elements, estimator="count"
        ),
        expected=Expected(value=0.0, kind="exact", source="sum of distinct powers of two in int64"),
        culprits=culprits,
        message=f"{wrong} of {sweep.payload_elements} exact sums are wrong"
        + (f" at {', '.join(sizes)} bytes" if wrong else ""),
        next_action="Take the accused rank's node out and test its memory and NIC." if wrong else None,
    )
