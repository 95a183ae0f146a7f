"""Confidence interval of a probability from k successes in n trials (pure)."""

import math

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
