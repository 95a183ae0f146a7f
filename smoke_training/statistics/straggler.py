"""The straggler rule: leave-one-out ratios, blocks, trimmed means, three answers (pure).

Per iteration i, rank r needs c_ri seconds of compute before any collective. x_ri = log c_ri - median over
the other ranks of log c_qi cancels whatever slows all ranks at once. Ten iterations make a block, the unit
of inference, because noise comes in bursts. Two block statistics are kept:

- the *median* of x inside the block sees a rank that is steadily slow and shrugs off short bursts;
- the log ratio of block *totals* sees a rank that is stopped now and then (a CPU quota); it never acquits.

The trimmed mean over blocks m gets two intervals. FAIL(r): its lower end, at this check's share of the
family-wise error (`estimators.decision_z`), lies above log 1.05, and m above the largest tolerated slowdown.
PASS: its upper end at one-sided 1e-3 lies below the tolerated slowdown for all ranks, and no rank's totals
say otherwise. Otherwise INCONCLUSIVE. Between 1.05 and the tolerated slowdown either verdict is acceptable.
"""

from dataclasses import dataclass

from smoke_training.model import Verdict
from smoke_training.statistics.estimators import Z_ACQUIT, Ratio, Rows, decision_z
from smoke_training.statistics.peers import block_medians, block_totals

BLOCK = 10
FIRST_LOOK = 80
LOOK_EVERY = 40
CAP = 400
LOOKS = 1 + (CAP - FIRST_LOOK) // LOOK_EVERY
STATISTICS = 2  # median and total: both may accuse
NEGLIGIBLE_SLOWDOWN = 1.05


@dataclass(frozen=True, kw_only=True)
class RankScore(Ratio):
    """Slowdown of one rank relative to its peers: `low` decides FAIL and `high` decides PASS."""

    rank: int
    statistic: str  # median | total


@dataclass(frozen=True)
class StragglerFinding:
    """Decision of one look with the score of every rank, and the ranks it accuses (worst first)."""

    decision: Verdict  # INCONCLUSIVE requests more samples
    scores: tuple[RankScore, ...]
    accused: tuple[RankScore, ...]


def judge(compute: Rows, max_slowdown: float) -> StragglerFinding:
    """Apply the rule to `compute[rank][iteration]` in seconds; an incomplete last block is not used."""
    medians, totals = block_medians(compute, BLOCK), block_totals(compute, BLOCK)
    if not medians[0]:
        raise ValueError(f"every rank must have the same number of iterations, at least {BLOCK}")
    steady, throughput = _scores(medians, "median"), _scores(totals, "total")
    accused = _accused(steady, max_slowdown) or _accused(throughput, max_slowdown)
    if accused:
        shown = steady if accused[0].statistic == "median" else throughput
        return StragglerFinding(Verdict.FAIL, shown, accused)
    passed = all(score.high < max_slowdown for score in steady)
    # Totals see a rank that stops now and then. They are too easily moved by bursts to need an interval, but
    # a rank whose total itself lies beyond the limit is sampled further instead of acquitted.
    suspected = any(score.value >= max_slowdown for score in throughput)
    return StragglerFinding(Verdict.PASS if passed and not suspected else Verdict.INCONCLUSIVE, steady, ())


def _accused(scores: tuple[RankScore, ...], max_slowdown: float) -> tuple[RankScore, ...]:
    slow = [s for s in scores if s.low > NEGLIGIBLE_SLOWDOWN and s.value > max_slowdown]
    return tuple(sorted(slow, key=lambda score: -score.value))


def _scores(series: Rows, statistic: str) -> tuple[RankScore, ...]:
    accuse = decision_z(comparisons=STATISTICS * len(series), looks=LOOKS)
    return tuple(
        RankScore.of(logs, accuse, Z_ACQUIT, rank=rank, statistic=statistic)
        for rank, logs in enumerate(series)
    )
