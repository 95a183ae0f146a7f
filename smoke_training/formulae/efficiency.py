"""Scaling efficiency, differences, cost (pure)."""

import math


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
