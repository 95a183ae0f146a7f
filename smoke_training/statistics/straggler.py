"""The straggler rule: leave-one-out ratios, blocks, trimmed means, three answers (pure).

Per iteration i, rank r needs c_ri seconds of compute before any collective. x_ri = log c_ri - median over
the other ranks of log c_qi cancels whatever slows all ranks at once. Ten iterations make a block, the unit
of inference, because noise comes in bursts. Two block statistics are kept:

- the *median* of x inside the block sees a rank that is steadily slow and shrugs off short bursts;
- the log ratio of block *totals* sees a rank that is stopped for a while now and then (a CPU quota of 100 ms
  periods), which a median of short steps cannot see. It may only accuse, never acquit.

The trimmed mean over blocks m gets two intervals. FAIL(r): its lower end, at this check's share of the
family-wise error (`estimators.decision_z` over ranks, statistics and looks), lies above log 1.05, and m above
the largest tolerated slowdown. PASS: its upper end at one-sided 1e-3 lies below the tolerated slowdown for
all ranks, and no rank's totals say otherwise. Otherwise INCONCLUSIVE. Rates between 1.05 and the tolerated
slowdown are the indifference zone: either answer is acceptable there, and results state the zone.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.model import Verdict
from smoke_training.statistics.estimators import (
    Z_ACQUIT,
    Z_REPORTED,
    bounded_exp,
    decision_z,
    trimmed_interval,
)

BLOCK = 10
FIRST_LOOK = 80
LOOK_EVERY = 40
CAP = 400
LOOKS = 1 + (CAP - FIRST_LOOK) // LOOK_EVERY
STATISTICS = 2  # median and total: both may accuse
NEGLIGIBLE_SLOWDOWN = 1.05


@dataclass(frozen=True)
class Score:
    """How much slower one rank computes than its peers.

    `low` decides FAIL and `high` decides PASS, at the levels of this check; `ci95` is for readers.
    """

    rank: int
    slowdown: float
    low: float
    high: float
    ci95: tuple[float, float]
    blocks: int
    statistic: str


@dataclass(frozen=True)
class StragglerFinding:
    """Decision of one look with the score of every rank, and the ranks it accuses (worst first)."""

    decision: Verdict  # INCONCLUSIVE asks for more samples
    scores: tuple[Score, ...]
    accused: tuple[Score, ...]


def leave_one_out(values: Sequence[float]) -> list[float]:
    """Log of each value over the median of the others, by one sort: there may be hundreds.

    Needs two values, all positive.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    logs = [math.log(values[i]) for i in order]
    others, found = len(values) - 1, [0.0] * len(values)
    for place, i in enumerate(order):
        low, high = ((k + (k >= place)) for k in ((others - 1) // 2, others // 2))
        found[i] = logs[place] - (logs[low] + logs[high]) / 2
    return found


def block_medians(compute: Sequence[Sequence[float]]) -> list[list[float]]:
    """[rank][block] medians of the leave-one-out log ratios of `compute[rank][iteration]`."""
    blocks = _block_count(compute)
    ratios = [leave_one_out(column) for column in zip(*compute, strict=True)]
    return [
        [statistics.median(ratios[i][rank] for i in range(b * BLOCK, (b + 1) * BLOCK)) for b in range(blocks)]
        for rank in range(len(compute))
    ]


def block_totals(compute: Sequence[Sequence[float]]) -> list[list[float]]:
    """[rank][block] leave-one-out log ratios of the ranks' total seconds per block."""
    blocks = _block_count(compute)
    totals = [
        leave_one_out([math.fsum(series[b * BLOCK : (b + 1) * BLOCK]) for series in compute])
        for b in range(blocks)
    ]
    return [[totals[b][rank] for b in range(blocks)] for rank in range(len(compute))]


def judge(compute: Sequence[Sequence[float]], max_slowdown: float) -> StragglerFinding:
    """Apply the rule to `compute[rank][iteration]` in seconds; an incomplete last block is not used."""
    steady = _scores(block_medians(compute), "median")
    throughput = _scores(block_totals(compute), "total")
    accused = _accused(steady, max_slowdown) or _accused(throughput, max_slowdown)
    if accused:
        shown = steady if accused[0].statistic == "median" else throughput
        return StragglerFinding(Verdict.FAIL, shown, accused)
    passed = all(score.high < max_slowdown for score in steady)
    # Totals see a rank that stops now and then. They are too easily moved by bursts to need an interval, but
    # a rank whose total itself lies beyond the limit is sampled further instead of acquitted.
    suspected = any(score.slowdown >= max_slowdown for score in throughput)
    return StragglerFinding(Verdict.PASS if passed and not suspected else Verdict.INCONCLUSIVE, steady, ())


def _accused(scores: Sequence[Score], max_slowdown: float) -> tuple[Score, ...]:
    slow = [s for s in scores if s.low > NEGLIGIBLE_SLOWDOWN and s.slowdown > max_slowdown]
    return tuple(sorted(slow, key=lambda score: -score.slowdown))


def _scores(blocks: Sequence[Sequence[float]], statistic: str) -> tuple[Score, ...]:
    scores = []
    accuse = decision_z(comparisons=STATISTICS * len(blocks), looks=LOOKS)
    for rank, series in enumerate(blocks):
        low = bounded_exp(trimmed_interval(series, accuse).low)
        high = bounded_exp(trimmed_interval(series, Z_ACQUIT).high)
        reported = trimmed_interval(series, Z_REPORTED)
        ci95 = (bounded_exp(reported.low), bounded_exp(reported.high))
        scores.append(Score(rank, math.exp(reported.estimate), low, high, ci95, len(series), statistic))
    return tuple(scores)


def _block_count(compute: Sequence[Sequence[float]]) -> int:
    if len(compute) < 2:
        raise ValueError("a straggler needs peers: at least two ranks")
    lengths = {len(series) for series in compute}
    if len(lengths) != 1 or min(lengths) < BLOCK:
        raise ValueError(f"every rank must bring the same number of iterations, at least {BLOCK}")
    return min(lengths) // BLOCK
