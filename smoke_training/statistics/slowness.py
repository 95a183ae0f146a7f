"""How many times longer a node's storage takes than it should: than its peers', or than declared (pure).

The straggler rule with a wider zone, because disks are noisier than processors and the fault that matters
halves a rate. Per repetition, the log of a node's time over the median of the other nodes' (or over the
declared time) cancels what slows all nodes at once. Consecutive repetitions make a block; a block's median
shrugs off single long repetitions, its total also sees storage that stops now and then (token buckets). The
20 % trimmed mean over blocks gets a lower bound at its share of the family-wise error, because a false
accusation is the worst answer, and an upper bound at the level of acquittals (`estimators`). One look can
accuse: the probe stops early to acquit, never because a node looks slow.

Storage behind a token bucket lets some repetitions pass for nothing and holds the next ones back, a tenth of
a second or so. Their median says nothing then: only totals count, of blocks long enough for several refills.

FAIL: the lower bound of either statistic above 1.5x. PASS, else: the estimate of either within 1.5x and its
upper bound below 2x, which excludes a halved rate. Otherwise INCONCLUSIVE.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.model import Verdict
from smoke_training.statistics import noise
from smoke_training.statistics.estimators import (
    Z_ACQUIT,
    Z_REPORTED,
    bounded_exp,
    decision_z,
    trimmed_interval,
)
from smoke_training.statistics.straggler import leave_one_out

TOLERATED, HALVED = 1.5, 2.0
KEPT_PARTS = 20  # a twentieth of a repetition is left, however long its thread waited for a CPU
MIN_REPETITIONS, BLOCKS, MAX_BLOCK = 8, 16, 10
STATISTICS = YARDSTICKS = 2  # median and total, against the peers and against the declared rate
BURSTY_SHARE = 0.85  # of all time in the slower half of the repetitions; a log-normal sigma of 1 has 0.84
BURSTY_BLOCK_S = 0.25  # some refills of a token bucket: the kernel's own throttle works in 0.1 s
BURSTY_BLOCKS = 20  # longer blocks, not more of them: neighbours in a token bucket balance each other

Rows = Sequence[Sequence[float]]

_SPEAKS = (Verdict.FAIL, Verdict.PASS, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class Slowness:
    """One node's factor (1.0: as fast as expected). The bounds decide, `ci95` is for readers."""

    node: int
    factor: float
    low: float
    high: float
    ci95: tuple[float, float]
    blocks: int
    statistic: str  # median | total

    @property
    def verdict(self) -> Verdict:
        """What this factor alone says."""
        if self.low > TOLERATED:
            return Verdict.FAIL
        fine = self.factor <= TOLERATED and self.high < HALVED
        return Verdict.PASS if fine else Verdict.INCONCLUSIVE


def without_queue(rows: Rows, queue: Rows | None) -> list[list[float]]:
    """Seconds without the time a thread waited for a CPU; at least a twentieth of each is kept."""
    if queue is None:
        return [list(row) for row in rows]
    return [noise.without_queue(*pair, parts=KEPT_PARTS) for pair in zip(rows, queue, strict=True)]


def among_peers(nodes: Sequence[int], rows: Rows) -> tuple[Slowness, ...]:
    """Each node against the median of the others; ValueError below two nodes or eight repetitions."""
    if len(rows) < 2:
        raise ValueError("a comparison needs at least two nodes")
    return _scores(nodes, rows, None)


def against_declared(nodes: Sequence[int], rows: Rows, declared_s: float) -> tuple[Slowness, ...]:
    """Each node against the seconds that one repetition should take."""
    if declared_s <= 0:
        raise ValueError(f"a repetition cannot be declared to take {declared_s} s")
    return _scores(nodes, rows, declared_s)


def combined(scores: Sequence[Slowness]) -> Verdict:
    """FAIL if any node fails, PASS if all pass."""
    verdicts = {score.verdict for score in scores}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.INCONCLUSIVE


def block_length(repetitions: int) -> int:
    """Repetitions per block: up to ten, fewer where sixteen blocks would not come together."""
    if repetitions < MIN_REPETITIONS:
        raise ValueError(f"{repetitions} repetitions; at least {MIN_REPETITIONS} are needed")
    return min(MAX_BLOCK, max(1, repetitions // BLOCKS))


def bursty(rows: Rows) -> bool:
    """Whether some node's repetitions come in bursts, so that single ones tell nothing of its rate."""
    return any(_slower_half(row) > BURSTY_SHARE for row in rows)


def _slower_half(row: Sequence[float]) -> float:
    return sum(sorted(row)[len(row) // 2 :]) / sum(row)


def _scores(nodes: Sequence[int], rows: Rows, declared_s: float | None) -> tuple[Slowness, ...]:
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or len(nodes) != len(rows):
        raise ValueError("every node must bring the same number of repetitions")
    count = lengths.pop()
    length = block_length(count)
    z = decision_z(comparisons=STATISTICS * YARDSTICKS * len(rows))
    if bursty(rows):
        slowest = max(math.fsum(row) for row in rows)
        length = max(length, math.ceil(max(BURSTY_BLOCK_S, slowest / BURSTY_BLOCKS) * count / slowest))
        return tuple(_totals_scores(nodes, rows, declared_s, length, z))
    found = []
    steady = [_medians(row, length) for row in _ratios(rows, declared_s)]
    throughput = _totals_scores(nodes, rows, declared_s, length, z)
    for node, medians, by_total in zip(nodes, steady, throughput, strict=True):
        both = _score(node, medians, "median", z), by_total
        found.append(min(both, key=lambda score: _SPEAKS.index(score.verdict)))
    return tuple(found)


def _totals_scores(
    nodes: Sequence[int], rows: Rows, declared_s: float | None, length: int, z: float
) -> list[Slowness]:
    """By the total time per block; with less than one block nothing can be said of any node."""
    length = min(length, len(rows[0]))
    ratios = _ratios([_totals(row, length) for row in rows], declared_s and declared_s * length)
    return [_score(node, totals, "total", z) for node, totals in zip(nodes, ratios, strict=True)]


def _score(node: int, blocks: Sequence[float], statistic: str, z: float) -> Slowness:
    decisive, reported = trimmed_interval(blocks, z), trimmed_interval(blocks, Z_REPORTED)
    acquitting = trimmed_interval(blocks, Z_ACQUIT)
    return Slowness(
        node=node,
        factor=math.exp(decisive.estimate),
        low=bounded_exp(decisive.low),
        high=bounded_exp(acquitting.high),
        ci95=(bounded_exp(reported.low), bounded_exp(reported.high)),
        blocks=len(blocks),
        statistic=statistic,
    )


def _ratios(rows: Rows, declared_s: float | None) -> list[list[float]]:
    if declared_s is not None:
        return [[math.log(value / declared_s) for value in row] for row in rows]
    columns = [leave_one_out(column) for column in zip(*rows, strict=True)]
    return [[column[i] for column in columns] for i in range(len(rows))]


def _medians(row: Sequence[float], length: int) -> list[float]:
    return [statistics.median(part) for part in _parts(row, length)]


def _totals(row: Sequence[float], length: int) -> list[float]:
    return [math.fsum(part) for part in _parts(row, length)]


def _parts(row: Sequence[float], length: int) -> list[Sequence[float]]:
    return [row[start : start + length] for start in range(0, len(row) - length + 1, length)]
