"""When a median lies on one side of a floor: order statistics, warm-up, quiet samples (pure)."""

import math
import statistics
from collections.abc import Sequence

from smoke_training.statistics.estimators import Interval, median_absolute_deviation

WARM_UP_SHARE = 0.2


def decision_interval(values: Sequence[float], tail: float) -> Interval:
    """Median with order statistics that each miss it with probability `tail` at most.

    The number of values below the median is binomial(n, 1/2), whatever their distribution. Unbounded while
    even the extremes miss it more often (n < 10 for 1e-3). ValueError without values.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    centre = statistics.median(ordered)
    missed, rank = 0.5**count, -1
    while missed <= tail and 2 * (rank + 1) < count - 1:
        rank += 1
        missed += math.comb(count, rank + 1) * 0.5**count
    if rank < 0:
        return Interval(centre, -math.inf, math.inf, count)
    return Interval(centre, ordered[rank], ordered[count - 1 - rank], count)


def warm_up(seconds: Sequence[float]) -> int:
    """How many first samples are slower than what follows, 20 % of all at most.

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


def share_below(values: Sequence[float], floor: float) -> float:
    """Share of the values below a floor; 0 for none."""
    return sum(value < floor for value in values) / len(values) if values else 0.0
