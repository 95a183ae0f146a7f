"""What all judges share (pure)."""

import math

from smoke_training.evidence.world import World
from smoke_training.model import Verdict

PLAN = "the run plan"


def host_of(rank: int, cluster: World) -> str:
    """Host name of a rank."""
    return next(facts.host for facts in cluster.ranks if facts.rank == rank)


def against_floor(low: float, high: float, floor: float) -> Verdict:
    """PASS when the whole interval reaches the floor, FAIL when none of it does, else INCONCLUSIVE."""
    if low >= floor:
        return Verdict.PASS
    return Verdict.FAIL if high < floor else Verdict.INCONCLUSIVE


def finite(low: float, high: float) -> tuple[float, float] | None:
    """An interval for readers; None when it is unbounded."""
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None
