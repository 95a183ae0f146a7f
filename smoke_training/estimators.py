"""Robust estimators and their intervals (pure)."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

TRIM = 0.2  # share cut from each end: survives one noisy block in five on either side

Z_DECISION = 4.265  # one-sided 1e-5: a family-wise 1e-4 spread over checks, ranks and looks
Z_REPORTED = 1.960  # two-sided 95 %, for readers; never decides


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; `n` is the number of independent blocks behind it."""

    estimate: float
    low: float
    high: float
    n: int


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Median distance from the median, in the unit of the values."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values)


def student_quantile(z: float, freedom: int) -> float:
    """Student's t at the tail probability of the normal quantile `z`.

    Cornish-Fisher expansion, two terms (Abramowitz & Stegun 26.7.5); widens intervals of few blocks.
    """
    if freedom < 1:
        return math.inf
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second


def trimmed_interval(values: Sequence[float], z: float) -> Interval:
    """20 % trimmed mean with the Tukey-McLaughlin interval (winsorised standard error).

    Fewer than five values give an unbounded interval: too few to know their spread.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    cut = math.floor(TRIM * count)
    kept = ordered[cut : count - cut]
    mean = math.fsum(kept) / len(kept)
    if count < 5:
        return Interval(mean, -math.inf, math.inf, count)
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    error = statistics.stdev(winsorised) / ((1 - 2 * TRIM) * math.sqrt(count))
    half = student_quantile(z, len(kept) - 1) * error
    return Interval(mean, mean - half, mean + half, count)


def median_interval(values: Sequence[float]) -> Interval:
    """Median with the distribution-free interval of order statistics, at least 95 % two-sided.

    With fewer than six values even the extremes cover less than 95 %: the interval is unbounded.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to estimate from")
    ordered = sorted(values)
    centre = statistics.median(ordered)
    if count < 6:
        return Interval(centre, -math.inf, math.inf, count)
    rank, tail = 0, 0.5**count
    while rank + 1 < count // 2 and tail + math.comb(count, rank + 1) * 0.5**count <= 0.025:
        rank += 1
        tail += math.comb(count, rank) * 0.5**count
    return Interval(centre, ordered[rank], ordered[count - 1 - rank], count)
