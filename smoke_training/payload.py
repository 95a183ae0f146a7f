"""Rank-coded exact sums: what an all-reduce must return, and whom a wrong sum accuses (pure).

Rank r of a window contributes 1 << (r - first). The exact int64 sum then has one bit per rank, so a missing
or doubled contribution names its rank. A window holds at most 62 ranks; more ranks need several windows.
"""

from collections.abc import Iterable, Iterator

WINDOW = 62


def windows(ranks: int) -> Iterator[range]:
    """Consecutive groups of ranks that fit one int64 code."""
    for first in range(0, ranks, WINDOW):
        yield range(first, min(first + WINDOW, ranks))


def contribution(rank: int, window: range) -> int:
    """What `rank` adds in `window`; 0 outside it."""
    return 1 << (rank - window.start) if rank in window else 0


def expected_sum(window: range) -> int:
    """The exact sum: every bit of the window set once."""
    return (1 << len(window)) - 1


def suspects(wrong_sums: Iterable[int], window: range) -> list[int]:
    """Ranks whose contribution is missing from a wrong sum, or, if none is missing, was added twice."""
    missing: set[int] = set()
    doubled: set[int] = set()
    for value in wrong_sums:
        excess = value - expected_sum(window)
        missing.update(rank for rank in window if not value >> (rank - window.start) & 1)
        doubled.update(rank for rank in window if excess == contribution(rank, window))
    return sorted(doubled or missing)
