"""Robust estimators, their intervals, and the shares of the risk of a false alarm (pure).

**Family-wise error.** One healthy run may be called FAIL with probability `FAMILY_ALPHA`, whatever the number
of its checks, ranks and looks. Each of the `DECIDING_CHECKS`, whose FAIL rests on an interval, gets an equal
share; a check divides its share by the comparisons it makes (ranks, links, nodes, statistics) and by the
looks it takes (Bonferroni: valid however the comparisons depend on each other). `decision_z` is the only
place that computes this. Checks of exact equality have no share: they cannot fail by chance.

**Missed faults** are cheaper: a rank just at the tolerated limit may be acquitted with probability
`ACQUIT_ALPHA` per look. What reaches neither is sampled further and in the end INCONCLUSIVE.
"""

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from smoke_training.formulae.bandwidth import COLLECTIVES

Rows = Sequence[Sequence[float]]
"""One series per rank, node or cell."""

TRIM = 0.2  # share cut from each end: survives one noisy block in five on either side

FAMILY_ALPHA = 1e-4  # of a false FAIL in one healthy run
DECIDING_CHECKS = (
    "training.scaling_efficiency",
    "training.straggler",
    *(f"collective.{name}" for name in COLLECTIVES),
    "fabric.links",
    "fabric.rails",
    "fabric.loss",
    "loader.utilisation",
    "storage.write",
    "storage.read",
)
ACQUIT_ALPHA = 1e-3  # one-sided, per look: that a rank at the tolerated limit passes

_NORMAL = statistics.NormalDist()


def critical_z(alpha: float) -> float:
    """Return the normal quantile with one-sided tail probability `alpha`; ValueError outside (0, 1)."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: got {alpha}; must lie between 0 and 1")
    return -_NORMAL.inv_cdf(alpha)


def decision_alpha(*, comparisons: int = 1, looks: int = 1) -> float:
    """One-sided share of `FAMILY_ALPHA` for one comparison at one look of one check."""
    if comparisons < 1 or looks < 1:
        raise ValueError(f"a check makes at least one comparison at one look, got {comparisons} x {looks}")
    return FAMILY_ALPHA / (len(DECIDING_CHECKS) * comparisons * looks)


def decision_z(*, comparisons: int = 1, looks: int = 1) -> float:
    """Return the quantile that a FAIL must clear; `trimmed_interval` turns it into Student's t."""
    return critical_z(decision_alpha(comparisons=comparisons, looks=looks))


Z_DECISION = decision_z()  # 4.305, one-sided 8.3e-6: a check of one comparison and one look
Z_ACQUIT = critical_z(ACQUIT_ALPHA)  # 3.090
Z_REPORTED = 1.960  # two-sided 95 %, for readers; never decides


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval; `n` is the number of independent blocks behind it."""

    estimate: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio estimated from logarithms of blocks: `low` and `high` decide, `ci95` is for readers."""

    value: float
    low: float
    high: float
    ci95: tuple[float, float]
    blocks: int

    @classmethod
    def of(cls, logs: Sequence[float], low_z: float, high_z: float, **own: Any) -> Self:
        """Each bound at its own quantile; `own` are the fields of a subclass. ValueError without logs."""
        low, high, reported = (trimmed_interval(logs, z) for z in (low_z, high_z, Z_REPORTED))
        return cls(
            value=math.exp(reported.estimate),
            low=math.exp(low.low),
            high=bounded_exp(high.high),
            ci95=(math.exp(reported.low), bounded_exp(reported.high)),
            blocks=len(logs),
            **own,
        )


def bounded_exp(value: float) -> float:
    """Return the exponential; infinity for huge values instead of an OverflowError."""
    return math.inf if value > 700 else math.exp(value)


def blocks(values: Sequence[float], length: int) -> list[Sequence[float]]:
    """Split into blocks of `length` values; an incomplete last block is dropped."""
    return [values[start : start + length] for start in range(0, len(values) - length + 1, length)]


def bisect(reached: Callable[[float], bool], most: float) -> float:
    """Return the least positive value that satisfies a monotonic condition, within 1e-9 relative."""
    low, high = 0.0, most
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return (low + high) / 2


def median_absolute_deviation(values: Sequence[float]) -> float:
    """Return the median distance from the median, in the unit of the values."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values)


@functools.lru_cache(maxsize=4096)
def student_quantile(z: float, freedom: int) -> float:
    """Return Student's t at the tail probability of the normal quantile `z` (exact to 1e-9 relative).

    Found by bisection on the regularised incomplete beta function: the usual expansions are far too small in
    the far tail (half the exact value at one-sided 1e-7 and 5 degrees), which would be false alarms.
    """
    if freedom < 1:
        return math.inf
    if z < 0:
        return -student_quantile(-z, freedom)
    tail, most = math.erfc(z / math.sqrt(2)) / 2, 1.0
    while _student_tail(most, freedom) > tail:
        most *= 2
    return bisect(lambda t: _student_tail(t, freedom) <= tail, most)


def _student_tail(t: float, freedom: int) -> float:
    """P(T > t) for t >= 0: half the regularised incomplete beta I_x(v/2, 1/2), x = v / (v + t^2)."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    if x >= 1:
        return 0.5
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _beta_series(a, b, x) / 2
    return (1 - front * _beta_series(b, a, 1 - x)) / 2


def _beta_series(a: float, b: float, x: float) -> float:
    """I_x(a, b) a B(a, b) / (x^a (1-x)^b) / a: terms that are all positive (Abramowitz & Stegun 26.5.4)."""
    term, total, n = 1 / a, 0.0, 0
    while term > 1e-15 * total:
        total += term
        n += 1
        term *= x * (a + b + n - 1) / (a + n)
    return total


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
