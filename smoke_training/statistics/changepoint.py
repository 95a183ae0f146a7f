"""Detect a change of level inside a series of blocks: drift is reported, not averaged (pure).

Falcon (arXiv 2410.12588) calls a change of at least 10 % in the mean a fail-slow event; the same figure here,
with a test instead of a posterior: the split with the largest two-sample t statistic (pooled standard
deviation, which outliers widen) must clear a one-sided level shared out over all splits and series.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.statistics.estimators import critical_z, student_quantile

LEAST_CHANGE = math.log(1.10)
LEAST_SIDE = 4  # blocks before and after the change
ALPHA = 1e-4  # of a false detection
FLOOR = 1e-3  # standard deviation of logs below which clocks are too coarse


@dataclass(frozen=True)
class LevelChange:
    """A lasting change: the first block after it, and the level after over the level before."""

    block: int
    ratio: float


def find(logs: Sequence[float], *, series: int = 1) -> LevelChange | None:
    """Find the strongest change in block values given as logarithms; None below 10 % or without evidence.

    `series` is the caller's number of series: the level is shared among them.
    """
    count = len(logs)
    side = max(LEAST_SIDE, count // 5)  # a shorter one is a temporary burst
    splits = range(side, count - side + 1)
    if not splits:
        return None
    found = max(splits, key=lambda split: abs(_statistic(logs, split)))
    needed = student_quantile(critical_z(ALPHA / (2 * len(splits) * max(series, 1))), count - 2)
    # The level is a median: neither side may consist of a few blocks.
    change = statistics.median(logs[found:]) - statistics.median(logs[:found])
    if abs(_statistic(logs, found)) < needed or abs(change) < LEAST_CHANGE:
        return None
    return LevelChange(found, math.exp(change))


def _statistic(logs: Sequence[float], split: int) -> float:
    left, right = logs[:split], logs[split:]
    before, after = statistics.fmean(left), statistics.fmean(right)
    squares = math.fsum((v - before) ** 2 for v in left) + math.fsum((v - after) ** 2 for v in right)
    spread = max(math.sqrt(squares / (len(logs) - 2)), FLOOR)
    return (after - before) / (spread * math.sqrt(1 / len(left) + 1 / len(right)))
