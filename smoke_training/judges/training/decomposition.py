"""Judges of the breakdown of a step: decomposition, overlap, utilisation of the accelerators (pure)."""

import math
import statistics
from functools import partial

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Decomposition
from smoke_training.expected import lookup, tables
from smoke_training.formulae import mfu as formulae
from smoke_training.model import Check, Expected, Measured, Verdict
from smoke_training.plan import Plan

PARTS = ("data", "compute", "exposed", "checkpoint", "other")
TOLERANCE = 0.02  # of a rank's step: above this gap or overlap of the parts the record is invalid


def decomposition(_plan: Plan, found: Evidence) -> Check:
    """The five parts of every rank's steps sum to what the steps took; the record is invalid otherwise."""
    record = found.need(Decomposition)
    totals = [math.fsum(row) for row in record.total]
    parts = [{name: math.fsum(getattr(record, name)[rank]) for name in PARTS} for rank in range(len(totals))]
    gaps = [(math.fsum(part.values()) - total) / total for part, total in zip(parts, totals, strict=True)]
    worst = max(range(len(gaps)), key=lambda rank: abs(gaps[rank]))
    valid = abs(gaps[worst]) <= TOLERANCE
    steps = len(record.total[0])
    shares = {name: math.fsum(p[name] for p in parts) / math.fsum(totals) for name in PARTS}
    text = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return Check(
        status=Verdict.PASS if valid else Verdict.ERROR,
        measured=Measured(
            value=abs(gaps[worst]),
            unit="share of the step unaccounted for",
            n=steps,
            estimator="worst rank, sum over steps",
            detail={
                "shares": shares,
                "ranks": [
                    {"rank": rank, "step_s": total / steps, **{k: v / steps for k, v in part.items()}}
                    for rank, (total, part) in enumerate(zip(totals, parts, strict=True))
                ],
                "lost_to_data": shares["data"],
            },
        ),
        expected=Expected.exactly(0.0, "the parts follow each other", TOLERANCE),
        message=f"a step of {sum(totals) / len(totals) / steps * 1e3:.1f} ms is {text}"
        if valid
        else f"the parts of rank {worst}'s steps sum to {1 + gaps[worst]:.1%} of the steps",
        next_action=None if valid else "Do not read this record; look for a clock that jumps on that node.",
    )


def overlap(_plan: Plan, found: Evidence) -> Check:
    """1 - exposed / bare communication; reported, clamped to [0, 1] with a flag."""
    record = found.need(Decomposition)
    # The last rank to be ready waits for the wire alone; longer waits of others are imbalance.
    columns = list(zip(*record.exposed, strict=True))
    exposed = statistics.median(min(column) for column in columns)
    waiting = statistics.median(max(column) - min(column) for column in columns)
    bare = statistics.median(record.bare)
    raw = 1 - exposed / bare if bare > 0 else None
    value = None if raw is None else min(1.0, max(0.0, raw))
    measured = Measured(
        value=value,
        unit="ratio",
        n=len(record.total[0]),
        estimator="1 - median exposed / median bare communication, exposed = minimum over ranks",
        reason=None if value is not None else "the bare gradient exchange took no time",
        detail={
            "exposed_s": exposed,
            "bare_s": bare,
            "waiting_for_slower_ranks_s": waiting,
            "raw": raw,
            "clamped": raw is not None and raw != value,
        },
    )
    text = (
        f"a step waits {exposed * 1e3:.2f} ms for gradients, whose exchange alone takes {bare * 1e3:.2f} ms"
    )
    text += f": overlap {value:.0%}" if value is not None else ""
    return Check.reported(text, "depends on model and fabric", measured)


def mfu(plan: Plan, found: Evidence) -> Check:
    """Model FLOPs utilisation, where a peak is declared for the data type of the step; reported."""
    record = found.need(Decomposition)
    peak = plan.peak_tflops
    reason = formulae.without_peak(record.dtype, None if peak is None else peak.dtype)
    steps = [max(column) for column in zip(*record.total, strict=True)]
    rate = record.tokens_per_step / statistics.median(steps)
    detail: dict[str, object] = {
        "tokens_per_second": rate,
        "flops_per_token": record.flops_per_token,
        "dtype": record.dtype,
        "achievable": None,
        "achievable_reason": reason,
    }
    value = None
    if peak is not None and reason is None:
        utilisation = partial(
            formulae.mfu,
            flops_per_token=record.flops_per_token,
            tokens_per_second=rate,
            devices=len(record.total),
        )
        value = utilisation(peak_tflops=peak.value)
        known = lookup.achievable(tables.shipped(), record.device, record.dtype)
        source = None if known is None else f"{known.source.text} ({known.shape or known.name})"
        detail |= {
            "achievable": None if known is None else utilisation(peak_tflops=known.tflops),
            "achievable_reason": f"no published figure for {record.device}" if known is None else None,
            "achievable_source": source,
        }
    estimator = "FLOPs per token x tokens per second over devices x peak, median step"
    text = f"not stated: {reason}"
    if value is not None and peak is not None:
        text = f"{value:.1%} of the declared peak of {peak.value:g} TFLOPS ({peak.dtype})"
    measured = Measured(
        value=value, unit="ratio", n=len(steps), estimator=estimator, reason=reason, detail=detail
    )
    return Check.reported(text, "the model is small and its batch fixed", measured)
