"""Compare every member of a group with its peers: common slowdowns cancel (pure)."""

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.statistics.estimators import Z_REPORTED, Ratio, Rows, blocks

WINDOWS_KEPT = 60


def leave_one_out(values: Sequence[float]) -> list[float]:
    """Return the log of each value over the median of the others, by one sort.

    Needs two values, all positive.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    logs = [math.log(values[i]) for i in order]
    others, found = len(values) - 1, [0.0] * len(values)
    for place, i in enumerate(order):
        low, high = ((k + (k >= place)) for k in ((others - 1) // 2, others // 2))
        found[i] = logs[place] - (logs[low] + logs[high]) / 2
    return found


def log_ratios(rows: Rows, expected: float | None = None) -> list[list[float]]:
    """[member][i] logs of each value over the median of the other members', or over the expected one.

    ValueError for rows of unlike length, and below two members without an expected value.
    """
    if len({len(row) for row in rows}) != 1:
        raise ValueError("every member must have the same number of values")
    if expected is not None:
        return [[math.log(value / expected) for value in row] for row in rows]
    if len(rows) < 2:
        raise ValueError("a comparison needs peers: at least two members")
    columns = [leave_one_out(column) for column in zip(*rows, strict=True)]
    return [[column[member] for column in columns] for member in range(len(rows))]


def block_medians(rows: Rows, length: int, expected: float | None = None) -> list[list[float]]:
    """[member][block] medians of the log ratios of single values."""
    return [[statistics.median(part) for part in blocks(row, length)] for row in log_ratios(rows, expected)]


def block_totals(rows: Rows, length: int, expected: float | None = None) -> list[list[float]]:
    """[member][block] log ratios of the totals per block."""
    totals = [[math.fsum(part) for part in blocks(row, length)] for row in rows]
    return log_ratios(totals, None if expected is None else expected * length)


@dataclass(frozen=True, kw_only=True)
class RankStanding:
    """Slowdown of a rank relative to its peers; the 95 % interval needs five windows."""

    rank: int
    slowdown: float
    ci95: tuple[float, float] | None
    windows: int


class PeerComparison:
    """Leave-one-out scores over the latest windows: a recovered rank is no longer slow after a while."""

    def __init__(self, ranks: int) -> None:
        if ranks < 2:
            raise ValueError("a rank is compared with its peers: at least two ranks")
        self._logs = [deque[float](maxlen=WINDOWS_KEPT) for _ in range(ranks)]

    def add(self, medians: Sequence[float]) -> None:
        """Add one window: the median compute seconds of every rank, in rank order."""
        if len(medians) != len(self._logs):
            raise ValueError(f"{len(medians)} figures for {len(self._logs)} ranks")
        for logs, value in zip(self._logs, leave_one_out(medians), strict=True):
            logs.append(value)

    def standings(self) -> list[RankStanding]:
        """Return every rank's score, in rank order; empty before the first window."""
        ratios = [Ratio.of(list(logs), Z_REPORTED, Z_REPORTED) for logs in self._logs if logs]
        return [
            RankStanding(
                rank=rank,
                slowdown=found.value,
                ci95=found.ci95 if math.isfinite(found.ci95[1]) else None,
                windows=found.blocks,
            )
            for rank, found in enumerate(ratios)
        ]
