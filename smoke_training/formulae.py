"""Formulae of the collective and scaling measures (pure). GB/s is 10^9 bytes per second everywhere.

Definitions follow nccl-tests `doc/PERFORMANCE.md` (NVIDIA/nccl-tests, commit a0b82b2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


def algbw_gb_s(size_bytes: int, seconds: float) -> float:
    """Algorithm bandwidth in GB/s: payload bytes over the slowest rank's time."""
    if seconds <= 0:
        raise ValueError(f"a collective cannot take {seconds} s")
    return size_bytes / seconds / 1e9


def busbw_gb_s(size_bytes: int, seconds: float, ranks: int) -> float | None:
    """All-reduce bus bandwidth in GB/s: algbw * 2(n-1)/n; None for one rank, where no byte crosses a bus."""
    if ranks < 2:
        return None
    return algbw_gb_s(size_bytes, seconds) * 2 * (ranks - 1) / ranks


@dataclass(frozen=True)
class AlphaBeta:
    """A fit of t(S) = latency + S / bandwidth."""

    latency_s: float
    bandwidth_gb_s: float | None  # None: times did not grow with size, so no bandwidth can be read off
    max_relative_residual: float


def fit_alpha_beta(points: Sequence[tuple[int, float]]) -> AlphaBeta:
    """Least squares over (size in bytes, seconds), weighted by 1/t^2: every decade of sizes counts alike.

    Needs two distinct sizes. A latency fault moves the latency, a bandwidth fault the slope.
    """
    if len({size for size, _ in points}) < 2:
        raise ValueError("an alpha-beta fit needs at least two different sizes")
    weights = [1 / seconds**2 for _, seconds in points]
    total = math.fsum(weights)
    mean_size = math.fsum(w * size for w, (size, _) in zip(weights, points, strict=True)) / total
    mean_time = math.fsum(w * t for w, (_, t) in zip(weights, points, strict=True)) / total
    covariance = math.fsum(
        w * (size - mean_size) * (t - mean_time) for w, (size, t) in zip(weights, points, strict=True)
    )
    variance = math.fsum(w * (size - mean_size) ** 2 for w, (size, _) in zip(weights, points, strict=True))
    slope = covariance / variance
    latency = mean_time - slope * mean_size
    residual = max(abs(latency + slope * size - t) / t for size, t in points)
    return AlphaBeta(latency, 1 / slope / 1e9 if slope > 0 else None, residual)


def scaling_efficiency(compute_seconds: float, step_seconds: float) -> float:
    """Co-loaded efficiency T_nocomm(N) / T(N).

    Both times are taken while all N ranks compute. T(1)/T(N) instead would charge the ranks of one machine
    for the caches, memory bandwidth and turbo clocks they share, which is not what a fabric adds.
    """
    if step_seconds <= 0 or compute_seconds <= 0:
        raise ValueError("step times are positive")
    return compute_seconds / step_seconds


def relative_difference(left: float, right: float) -> float:
    """Symmetric relative difference; 0 when both are equal, infinite when one is not finite."""
    if not (math.isfinite(left) and math.isfinite(right)):
        return math.inf
    scale = max(abs(left), abs(right))
    return abs(left - right) / scale if scale else 0.0


def estimated_cost_usd(hourly_cost_usd: float | None, seconds: float) -> float | None:
    """Price of the machine time in USD; None when the hourly price is unknown."""
    return None if hourly_cost_usd is None else hourly_cost_usd * seconds / 3600
