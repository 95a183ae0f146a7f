"""Standing of ranks against their peers, from one figure per rank and window (pure)."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from smoke_training.statistics.estimators import Z_REPORTED, trimmed_interval
from smoke_training.statistics.straggler import leave_one_out

WINDOWS_KEPT = 60


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How many times slower than its peers a rank computes; the 95 % interval needs five windows."""

    rank: int
    slowdown: float
    ci95: tuple[float, float] | None
    windows: int


class Comparison:
    """Leave-one-out scores over the latest windows: a rank that recovered is forgiven after a while."""

    def __init__(self, ranks: int) -> None:
        if ranks < 2:
            raise ValueError("a rank is compared with its peers: at least two ranks")
        self._logs = [deque[float](maxlen=WINDOWS_KEPT) for _ in range(ranks)]

    def add(self, medians: Sequence[float]) -> None:
        """One window: the median compute seconds of every rank, in rank order."""
        if len(medians) != len(self._logs):
            raise ValueError(f"{len(medians)} figures for {len(self._logs)} ranks")
        for logs, value in zip(self._logs, leave_one_out(medians), strict=True):
            logs.append(value)

    def standings(self) -> list[Standing]:
        """Every rank's score, in rank order; empty before the first window."""
        return [_standing(rank, logs) for rank, logs in enumerate(self._logs) if logs]


def _standing(rank: int, logs: Sequence[float]) -> Standing:
    found = trimmed_interval(list(logs), Z_REPORTED)
    bounded = math.isfinite(found.low) and math.isfinite(found.high)
    ci95 = (math.exp(found.low), math.exp(found.high)) if bounded else None
    return Standing(rank=rank, slowdown=math.exp(found.estimate), ci95=ci95, windows=found.n)
