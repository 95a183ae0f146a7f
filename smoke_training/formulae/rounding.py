"""Largest difference of two results that differ only in the order of their additions (pure).

Each addition multiplies what it adds up by some 1 + d with |d| <= u, the unit roundoff of the data type. The
bound that always holds, n u after n roundings in a row (Higham, *Accuracy and Stability of Numerical
Algorithms*, 2nd ed., lemma 3.1 and section 4.2), is never nearly reached: signs differ. For independent ones
of mean 0, Hoeffding's inequality gives lambda sqrt(n) u, exceeded with probability 2 exp(-lambda^2 / 2)
(Higham & Mary, *A New Approach to Probabilistic Rounding Error Analysis*, SIAM J. Sci. Comput. 41, 2019,
theorem 2.4).
"""

import math
from collections.abc import Mapping

UNIT_ROUNDOFF: Mapping[str, float] = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8}
NEVER = 1e-9  # probability that the bound is exceeded: negligible beside the error level of the statistics


def apart(dtype: str, roundings: int) -> float:
    """Largest relative difference of two results, each after at most so many roundings in a row.

    First order in u; ValueError for a data type without a known roundoff, or without a rounding.
    """
    if dtype not in UNIT_ROUNDOFF or roundings < 1:
        known = ", ".join(UNIT_ROUNDOFF)
        raise ValueError(f"got {roundings} roundings of {dtype}; at least one, of {known}")
    # Two results, and as many terms in each at most: every one of them has to stay within the bound.
    quantile = math.sqrt(2 * math.log(4 * roundings / NEVER))
    return 2 * min(roundings, quantile * math.sqrt(roundings)) * UNIT_ROUNDOFF[dtype]


def training(dtype: str, *, terms: int, steps: int) -> float:
    """Largest relative difference of a loss after so many steps, whose longest sums have so many terms.

    A loss depends on the sums of its own step and, through the weights, on those of earlier steps. A step is
    assumed not to amplify an error, which is true of a model that trains stably.
    """
    return apart(dtype, terms * steps)
