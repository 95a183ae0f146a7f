"""An upper bound on a wait from past waits alone, without a model of the queue or a distribution.

Brevik, Nurmi, Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines" (PPoPP
2006): of n past waits, the k-th smallest is at least the quantile q of all waits with confidence C, for the
least k with sum(binom(n, j) q^j (1 - q)^(n - j), j < k) >= C. With q = C = 0.95 that takes 59 waits.
"""

import datetime
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

QUANTILE = CONFIDENCE = 0.95
NEWEST = 500
"""Waits that count: older ones are of another state of the cluster, and 500 suffice for the quantile."""
IN_A_ROW = 3
"""Misses in a row that show that waits have changed: by chance 1 in 8000 with q = 0.95 (same paper, for waits
that do not depend on each other)."""


@dataclass(frozen=True)
class Wait:
    """The wait of a job, or of one that still waits."""

    submitted: datetime.datetime
    waited: datetime.timedelta | None
    """From submission to admission; None while it waits."""


@dataclass(frozen=True)
class Bound:
    """The duration that 95 % of waits stay below, with a confidence of 95 %."""

    wait: datetime.timedelta
    waits: int
    """The number of waits that it is computed from."""


def wait_bound(history: Sequence[Wait], now: datetime.datetime) -> Bound | None:
    """The bound on the wait of the next job like these; None where there are too few.

    A job that still waits counts against every bound that it has exceeded. So a bound is tested only with
    jobs that were submitted at least that long ago: for each it is known whether it waited longer.
    """
    newest = sorted(history, key=lambda one: one.submitted)[-NEWEST:]
    found = _bound(newest, now)
    if found is None or not _changed(newest, found, now):
        return found
    return _bound(newest[-fewest() :], now)


def fewest() -> int:
    """The fewest waits that give a bound."""
    count = 1
    while needed(count) is None:
        count += 1
    return count


@lru_cache(maxsize=NEWEST + 1)
def needed(count: int) -> int | None:
    """The least k, for `count` waits; None where even the longest of them is no bound."""
    probability, above = QUANTILE**count, 0.0  # of exactly k, and of more than k, waits below the quantile
    if count < 1 or probability > 1 - CONFIDENCE:
        return None
    k = count
    while above + probability <= 1 - CONFIDENCE:
        above += probability
        probability *= k / (count - k + 1) * (1 - QUANTILE) / QUANTILE
        k -= 1
    return k + 1


def _bound(history: Sequence[Wait], now: datetime.datetime) -> Bound | None:
    submitted = [one.submitted for one in history]
    for bound in sorted({one.waited for one in history if one.waited is not None}):
        asked = bisect_right(submitted, now - bound)
        below = sum(one.waited is not None and one.waited <= bound for one in history[:asked])
        least = needed(asked)
        if least is not None and below >= least:
            return Bound(bound, asked)
    return None


def _changed(history: Sequence[Wait], found: Bound, now: datetime.datetime) -> bool:
    """Return whether the last jobs with a known result all waited longer than the bound."""
    known = [one for one in history if one.submitted <= now - found.wait][-IN_A_ROW:]
    return len(known) == IN_A_ROW and all(one.waited is None or one.waited > found.wait for one in known)
