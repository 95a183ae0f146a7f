"""Latency and bandwidth of a collective, t(S) = a + S / B (pure)."""

import bisect
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[int, float]  # size in bytes, seconds


@dataclass(frozen=True)
class AlphaBeta:
    """A fit of t(S) = latency + S / bandwidth.

    `robust_*` are the Theil-Sen estimates of the same two: one size that was slowed does not move them where
    at least five are limited by bandwidth. Where the two disagree, the times do not follow the model and
    neither should be read as a property of the wire.
    """

    latency_s: float
    bandwidth_gb_s: float | None  # None: times did not grow with size
    max_relative_residual: float
    robust_latency_s: float
    robust_bandwidth_gb_s: float | None

    @property
    def half_size_bytes(self) -> float | None:
        """S_1/2: the size that reaches half of the bandwidth, a * B. None without either."""
        if self.bandwidth_gb_s is None or self.latency_s <= 0:
            return None
        return self.latency_s * self.bandwidth_gb_s * 1e9


def fit_alpha_beta(points: Sequence[Point]) -> AlphaBeta:
    """Least squares over (size in bytes, seconds), weighted by 1/t^2: every decade of sizes counts alike.

    Needs two distinct sizes, else ValueError. A latency fault moves the latency, a bandwidth fault the slope.
    """
    if len({size for size, _ in points}) < 2:
        raise ValueError("an alpha-beta fit needs at least two different sizes")
    weights = [1 / seconds**2 for _, seconds in points]
    mean_size, mean_time = (statistics.fmean(values, weights) for values in zip(*points, strict=True))
    offsets = [(w, size - mean_size, t - mean_time) for w, (size, t) in zip(weights, points, strict=True)]
    covariance = math.fsum(w * size * t for w, size, t in offsets)
    variance = math.fsum(w * size**2 for w, size, _ in offsets)
    slope = covariance / variance
    latency = mean_time - slope * mean_size
    residual = max(abs(latency + slope * size - t) / t for size, t in points)
    robust_latency, robust_slope = theil_sen(points)
    return AlphaBeta(latency, _rate(slope), residual, robust_latency, _rate(robust_slope))


def named_fit(points: Sequence[Point]) -> dict[str, float | None]:
    """Return a fit by names of its figures, in microseconds and GB/s; empty for fewer than two points."""
    if len(points) < 2:
        return {}
    fit = fit_alpha_beta(points)
    return {
        "latency_us": fit.latency_s * 1e6,
        "slope_gb_s": fit.bandwidth_gb_s,
        "fit_max_relative_residual": fit.max_relative_residual,
        "robust_latency_us": fit.robust_latency_s * 1e6,
        "robust_slope_gb_s": fit.robust_bandwidth_gb_s,
        "half_size_bytes": fit.half_size_bytes,
    }


def theil_sen(points: Sequence[Point]) -> tuple[float, float]:
    """(latency in seconds, seconds per byte): weighted median of all pairwise slopes, median intercept.

    A pair weighs |S1 - S2| / hypot(t1, t2), the inverse of its slope's error when times are off by a share
    of themselves (Sen 1968, weights as in Jaeckel 1972). The intercept is the median over the smaller half of
    the sizes, where it is the larger part of the time. ValueError without two distinct sizes.
    """
    slopes = sorted(
        ((t2 - t1) / (s2 - s1), abs(s2 - s1) / math.hypot(t1, t2))
        for (s1, t1), (s2, t2) in itertools.combinations(points, 2)
        if s1 != s2
    )
    if not slopes:
        raise ValueError("a slope needs at least two different sizes")
    reached = list(itertools.accumulate(weight for _, weight in slopes))
    slope = slopes[bisect.bisect_left(reached, reached[-1] / 2)][0]
    small = sorted(points)[: (len(points) + 1) // 2]
    return statistics.median(t - slope * size for size, t in small), slope


def _rate(seconds_per_byte: float) -> float | None:
    return 1 / seconds_per_byte / 1e9 if seconds_per_byte > 0 else None
