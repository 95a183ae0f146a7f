"""Judge of the GPUs' clocks: limited by heat or power, one GPU or all (pure).

Ranks are compared with each other, so a limit on all GPUs makes no straggler; the driver reports the reason
of a limited clock, though. The clocks of one H100 were read; throttling by heat is untested.
"""

from smoke_training.evidence import Evidence
from smoke_training.evidence.training import Training
from smoke_training.evidence.world import World
from smoke_training.judges.common import host_of
from smoke_training.judges.training.causes import CLOCK_FAULTS
from smoke_training.model import Check, Expected, Measured, Verdict
from smoke_training.plan import Plan


def clocks(_plan: Plan, found: Evidence) -> Check:
    """Check the drivers' reasons for limited clocks; a GPU slow by it fails as a straggler, too."""
    training, cluster = found.need(Training), found.need(World)
    mhz = {rank: window.gpu_mhz for rank, window in enumerate(training.windows) if window.gpu_mhz}
    if not mhz:
        return Check.skipped("Not judged: no GPU reported its clock.")
    held = {
        rank: ", ".join(sorted(CLOCK_FAULTS & set(training.windows[rank].clock_reasons)))
        for rank in mhz
        if CLOCK_FAULTS & set(training.windows[rank].clock_reasons)
    }
    reported = [f"rank {rank} on node {host_of(rank, cluster)}: {reasons}" for rank, reasons in held.items()]
    slowest = min(mhz, key=mhz.__getitem__)
    figure = f"the slowest of {len(mhz)} GPUs ran at {mhz[slowest]:.0f} MHz (rank {slowest})"
    return Check(
        status=Verdict.INCONCLUSIVE if held else Verdict.PASS,
        measured=Measured(
            value=mhz[slowest],
            unit="MHz",
            n=len(mhz),
            estimator="slowest GPU, median of looks right after its compute-only steps",
        ),
        expected=Expected.unknown("the driver's reasons are judged, not the clock"),
        message=f"{figure}; clocks are limited: {'; '.join(reported[:8])}" if held else figure,
        next_action="Check power and cooling of these nodes (nvidia-smi -q -d PERFORMANCE), then run again."
        if held
        else None,
    )
