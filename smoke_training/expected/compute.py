"""Expected matrix-product rate of one GPU, and its certainty (pure).

The published rates are the highest that a source found with the best shapes. One H100 held 0.86 to 0.90 of
that with products of 8192 cubed, at its power limit (benchmarks/RESULTS.md), so 0.80 is a healthy GPU. Below
two thirds, as for fabrics, a fault is proven. Where no source measured the GPU, its vendor's peak is only a
guide: published rates reach 0.77 (B200) to 0.87 (A100) of theirs, and small GPUs may reach less.
"""

from dataclasses import dataclass

from smoke_training.expected import lookup
from smoke_training.expected.reference import FAULT_SHARE
from smoke_training.expected.tables import shipped
from smoke_training.formulae.mfu import without_peak
from smoke_training.model import Expected
from smoke_training.plan import Plan

PASS_SHARE = 0.80
OF_PEAK = 0.77


@dataclass(frozen=True)
class ComputeReference:
    """TFLOPS: from `expected.floor` on is a pass, below `fail_below` a fault (None: nothing proves one)."""

    expected: Expected
    fail_below: float | None = None


def reference(plan: Plan, device: str, dtype: str) -> ComputeReference:
    """For a GPU as its driver names it."""
    known = lookup.achievable(shipped(), device, dtype)
    if known is not None:
        source = f"{known.source.text} ({known.shape or known.name})"
        floor = PASS_SHARE * known.tflops
        expected = Expected(value=known.tflops, kind="published", source=source, floor=floor)
        return ComputeReference(expected, FAULT_SHARE * known.tflops)
    peak = plan.peak_tflops
    reason = without_peak(dtype, None if peak is None else peak.dtype)
    if peak is None or reason is not None:
        return ComputeReference(Expected.unknown(f"no source measured {device}; {reason}", source="none"))
    value, text = OF_PEAK * peak.value, f"provisional: no source measured {device}"
    source = f"{OF_PEAK:g} of the peak {peak.value:g} TFLOPS, {peak.source}"
    return ComputeReference(
        Expected(value=value, kind="derived", source=source, floor=PASS_SHARE * value, reason=text)
    )
