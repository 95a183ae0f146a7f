"""Intervals of medians: order statistics, warm-up (pure)."""

import math
import statistics
from collections.abc import Sequence

from smoke_training.statistics.estimators import Interval, median_absolute_deviation

FIRST_LOOK, LOOK_EVERY, CAP = 15, 5, 60  # samples of the size that is judged
LOOKS = 1 + (CAP - FIRST_LOOK) // LOOK_EVERY
WARM_UP_SHARE = 0.2
REPORTED_TAIL = 0.025  # two-sided 95 %, for readers; never decides


def median_interval(values: Sequence[float], tail: float = REPORTED_TAIL) -> Interval:
    """Return the median with order statistics that each miss it with probability `tail` at most.

    The number of values below the median is binomial(n, 1/2), whatever their distribution. Unbounded while
    even the extremes miss it more often (n < 6 for two-sided 95 %). ValueError without values.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    centre = statistics.median(ordered)
    missed, rank = _outside(count, 0), -1
    while missed <= tail and 2 * (rank + 1) < count - 1:
        rank += 1
        missed += _outside(count, rank + 1)
    if rank < 0:
        return Interval(centre, -math.inf, math.inf, count)
    return Interval(centre, ordered[rank], ordered[count - 1 - rank], count)


def _outside(count: int, below: int) -> float:
    """Return the probability of so many values below the median, by logarithms against overflow."""
    ways = math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
    return math.exp(ways - count * math.log(2))


def warm_up(seconds: Sequence[float]) -> int:
    """Return the number of first samples slower than the following ones, at most 20 % of all.

    A sample belongs to the warm-up while it lies more than 5 % and three (normal) deviations above the median
    of all later ones.
    """
    most = math.floor(WARM_UP_SHARE * len(seconds))
    for index in range(most):
        later = seconds[index + 1 :]
        centre = statistics.median(later)
        limit = max(1.05 * centre, centre + 3 * 1.4826 * median_absolute_deviation(later))
        if seconds[index] <= limit:
            return index
    return most
