"""Confidence intervals of a probability from k successes in n trials (pure)."""

import math
from collections.abc import Callable

from smoke_training.statistics.estimators import Z_REPORTED


def wilson(successes: int, trials: int, z: float = Z_REPORTED) -> tuple[float, float]:
    """Score interval of a proportion, both ends in [0, 1]; `z` = 1.96 is two-sided 95 %.

    Wilson 1927, "Probable inference, the law of succession, and statistical inference", J. Am. Stat. Assoc.
    22: centre (k + z^2/2) / (n + z^2), half-width z sqrt(k (n - k) / n + z^2/4) / (n + z^2). Unlike the
    textbook interval it does not shrink to a point at 0 of n or n of n. Without a trial nothing is known:
    (0, 1). ValueError unless 0 <= successes <= trials and z > 0.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes: got {successes}; must lie between 0 and the {trials} trials")
    if not z > 0:
        raise ValueError(f"z: got {z}; must be above 0")
    if trials == 0:
        return 0.0, 1.0
    weight = trials + z * z
    centre = (successes + z * z / 2) / weight
    spread = z * math.sqrt(successes * (trials - successes) / trials + z * z / 4) / weight
    # At the ends the exact value is 0 or 1; rounding must not step over it.
    low = 0.0 if successes == 0 else max(0.0, centre - spread)
    high = 1.0 if successes == trials else min(1.0, centre + spread)
    return low, high


def clopper_pearson(successes: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """Exact interval of a proportion: each end misses the probability with `alpha` / 2 at most.

    Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26: the ends are where the observed count or a more extreme one has probability
    `alpha` / 2. (0, 1) without a trial. ValueError unless 0 <= successes <= trials and 0 < alpha < 1.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes: got {successes}; must lie between 0 and the {trials} trials")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: got {alpha}; must lie between 0 and 1")
    low = 0.0 if successes == 0 else _solved(lambda p: 1 - _at_most(successes - 1, trials, p), alpha / 2)
    high = (
        1.0 if successes == trials else 1 - _solved(lambda p: _at_most(successes, trials, 1 - p), alpha / 2)
    )
    return low, high


def _at_most(count: int, trials: int, p: float) -> float:
    """Probability of at most `count` successes."""
    return math.fsum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count + 1))


def _solved(rising: Callable[[float], float], wanted: float) -> float:
    """Where a rising function of a probability reaches `wanted`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low + high) / 2
