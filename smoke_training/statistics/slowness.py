"""Slowdown of a node's storage relative to its peers, or to a declared rate (pure).

The straggler rule with a wider zone, because disks are noisier than processors and the fault that matters
halves a rate. Per repetition, the log of a node's time over the median of the other nodes' (or over the
declared time) cancels what slows all nodes at once. Consecutive repetitions make a block; a block's median
shrugs off single long repetitions, its total also sees storage that stops now and then (token buckets). The
20 % trimmed mean over blocks gets a lower bound at its share of the family-wise error and an upper bound at
the level of acquittals (`estimators`). The probe stops early to acquit, never because a node looks slow.

Behind a token bucket some repetitions pass at once and the next ones are late: only totals count then.

FAIL: the lower bound of either statistic above 1.5x. PASS, else: the estimate of either within 1.5x and its
upper bound below 2x, which excludes a halved rate. Otherwise INCONCLUSIVE.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.model import Verdict
from smoke_training.statistics.estimators import Z_ACQUIT, Ratio, Rows, decision_z
from smoke_training.statistics.peers import block_medians, block_totals

TOLERATED, HALVED = 1.5, 2.0
KEPT_PARTS = 20  # a twentieth of a repetition is left, however long its thread waited for a CPU
MIN_REPETITIONS, BLOCKS, MAX_BLOCK = 8, 16, 10
STATISTICS = YARDSTICKS = 2  # median and total, against the peers and against the declared rate
BURSTY_SHARE = 0.85  # of all time in the slower half of the repetitions; a log-normal sigma of 1 has 0.84
BURSTY_BLOCK_S = 0.25  # some refills of a token bucket: the kernel's own throttle works in 0.1 s
BURSTY_BLOCKS = 20  # longer blocks, not more of them: neighbours in a token bucket balance each other

_SPEAKS = (Verdict.FAIL, Verdict.PASS, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class Slowness(Ratio):
    """One node's factor (1.0: as fast as expected)."""

    node: int
    statistic: str  # median | total

    @property
    def verdict(self) -> Verdict:
        """Verdict on this factor alone."""
        if self.low > TOLERATED:
            return Verdict.FAIL
        fine = self.value <= TOLERATED and self.high < HALVED
        return Verdict.PASS if fine else Verdict.INCONCLUSIVE


def combined(scores: Sequence[Slowness]) -> Verdict:
    """FAIL if any node fails, PASS if all pass."""
    verdicts = {score.verdict for score in scores}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.INCONCLUSIVE


def block_length(repetitions: int) -> int:
    """Return the repetitions per block: up to ten, fewer if there were less than sixteen blocks."""
    if repetitions < MIN_REPETITIONS:
        raise ValueError(f"{repetitions} repetitions; at least {MIN_REPETITIONS} are needed")
    return min(MAX_BLOCK, max(1, repetitions // BLOCKS))


def bursty(rows: Rows) -> bool:
    """Report whether some node's repetitions are bursty, so that single ones do not show its rate."""
    return any(sum(sorted(row)[len(row) // 2 :]) > BURSTY_SHARE * sum(row) for row in rows)


def factors(nodes: Sequence[int], rows: Rows, declared_s: float | None = None) -> tuple[Slowness, ...]:
    """Compare each node with the median of the others, or with the declared seconds of a repetition.

    ValueError below eight repetitions, for rows of unlike length, and for one node without a declared time.
    """
    if declared_s is not None and declared_s <= 0:
        raise ValueError(f"a repetition cannot be declared to take {declared_s} s")
    count, z = len(rows[0]), decision_z(comparisons=STATISTICS * YARDSTICKS * len(rows))
    length = block_length(count)
    if bursty(rows):
        slowest = max(math.fsum(row) for row in rows)
        wanted = math.ceil(max(BURSTY_BLOCK_S, slowest / BURSTY_BLOCKS) * count / slowest)
        length = min(count, max(length, wanted))  # at least one block is needed
        return tuple(_scores(nodes, block_totals(rows, length, declared_s), "total", z))
    medians = _scores(nodes, block_medians(rows, length, declared_s), "median", z)
    totals = _scores(nodes, block_totals(rows, length, declared_s), "total", z)
    pairs = zip(medians, totals, strict=True)
    return tuple(min(pair, key=lambda score: _SPEAKS.index(score.verdict)) for pair in pairs)


def _scores(nodes: Sequence[int], series: Rows, statistic: str, z: float) -> list[Slowness]:
    return [
        Slowness.of(logs, z, Z_ACQUIT, node=node, statistic=statistic)
        for node, logs in zip(nodes, series, strict=True)
    ]
