"""Compare a rate of rare events with a floor: counts per exposure, three outcomes (pure).

Retransmitted segments are counts. Their bounds are the exact ones of Garwood (Biometrika 28, 1936); above
`EXACT_UP_TO` events Byar's approximation (Breslow & Day, *Statistical Methods in Cancer Research* II,
1987, p. 69) is used, within 0.5 %. A burst is one event: counts and exposures are divided by the dispersion
between visits (quasi-Poisson, McCullagh & Nelder 1989, 6.2.3), never below 1.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.statistics.estimators import Z_ACQUIT, bisect
from smoke_training.statistics.links import CellState

# A rate certainly below CLEAN passes, one certainly above LOSSY fails; between the two nothing is decided. A
# clean wire stays below 0.00011, one that loses a packet of a hundred reads 0.009.
CLEAN, LOSSY = 0.001, 0.002
# Of the visits, those with the most events. An end that waits for a CPU lets timers of its peer expire, which
# resends segments that arrived long ago, and not all is reported as needless: on two busy cores a visit in
# ten had bursts of 10 to 100 segments at 1 Gb/s, the others none. A lossy wire loses some in all.
BURSTS = 0.2
EXACT_UP_TO = 40


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Events per exposure, with the bounds that decide and the dispersion that widened them."""

    events: int
    exposure: int
    estimate: float
    low: float
    high: float
    dispersion: float
    answer: CellState


@functools.lru_cache(maxsize=4096)
def bounds(count: float, z: float) -> tuple[float, float]:
    """Return both bounds of the mean of a Poisson variable seen `count` times, one-sided at `z` each."""
    if count < 0:
        raise ValueError(f"a count cannot be {count}")
    if count > EXACT_UP_TO:
        more = count + 1
        low = count * (1 - 1 / (9 * count) - z / (3 * math.sqrt(count))) ** 3
        return low, more * (1 - 1 / (9 * more) + z / (3 * math.sqrt(more))) ** 3
    tail, most = 0.5 * math.erfc(z / math.sqrt(2)), 10 * count + 100
    high = bisect(lambda mean: _at_most(math.ceil(count), mean) <= tail, most)
    if count < 1:
        return 0.0, high
    return bisect(lambda mean: _at_least(math.floor(count), mean) >= tail, most), high


def dispersion(events: Sequence[int], exposures: Sequence[int]) -> float:
    """Pearson's chi-square of the visits per degree of freedom, at least 1: burstiness of the events."""
    total, exposed = sum(events), sum(exposures)
    if total == 0 or len(events) < 2:
        return 1.0
    pairs = [(k, total * m / exposed) for k, m in zip(events, exposures, strict=True) if m > 0]
    chi_square = math.fsum((k - wanted) ** 2 / wanted for k, wanted in pairs)
    return max(1.0, chi_square / max(1, len(pairs) - 1))


def steady(events: Sequence[int], exposures: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return events and exposures without the fifth with the BURSTS; all of fewer than five visits."""
    order = sorted(range(len(events)), key=lambda i: events[i] / max(1, exposures[i]))
    kept = sorted(order[: len(order) - int(BURSTS * len(order))])
    return [events[i] for i in kept], [exposures[i] for i in kept]


def rate(events: Sequence[int], exposures: Sequence[int], z: float) -> Rate:
    """Judge visits: `events[i]` of `exposures[i]`.

    BAD: above LOSSY at the quantile `z`; else GOOD: below CLEAN at the level of acquittals.
    """
    if len(events) != len(exposures):
        raise ValueError("every visit needs its exposure")
    total, exposed = sum(events), sum(exposures)
    if exposed <= 0:
        raise ValueError("nothing was exposed")
    spread = dispersion(events, exposures)
    low, high = (bounds(total / spread, level)[i] * spread / exposed for i, level in enumerate((z, Z_ACQUIT)))
    answer = CellState.BAD if low > LOSSY else CellState.GOOD if high < CLEAN else CellState.OPEN
    return Rate(
        events=total,
        exposure=exposed,
        estimate=total / exposed,
        low=low,
        high=high,
        dispersion=spread,
        answer=answer,
    )


def _at_most(count: int, mean: float) -> float:
    """Return P(X <= count) for a count of at most EXACT_UP_TO: no term over- or underflows first."""
    term = total = math.exp(-mean)
    for k in range(1, count + 1):
        term *= mean / k
        total += term
    return total


def _at_least(count: int, mean: float) -> float:
    """Return P(X >= count), by its own terms: 1 - P(X < count) loses precision where it is small."""
    term = math.exp(-mean + count * math.log(mean) - math.lgamma(count + 1)) if mean > 0 else 0.0
    total, k = term, count
    while term > 1e-12 * total and k < count + 1000:
        k += 1
        term *= mean / k
        total += term
    return min(1.0, total)
