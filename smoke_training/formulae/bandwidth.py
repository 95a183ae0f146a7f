"""Bandwidths of collectives (pure). GB/s is 10^9 bytes per second everywhere.

Definitions follow nccl-tests `doc/PERFORMANCE.md` (NVIDIA/nccl-tests, commit a0b82b2). The size of a
collective is that of the whole array: what an all-reduce reduces, an all-gather ends with, a reduce-scatter
starts from, and what an all-to-all sends from one rank, its own share included.
"""

ALL_REDUCE = "all_reduce"
ALL_GATHER = "all_gather"
REDUCE_SCATTER = "reduce_scatter"
ALL_TO_ALL = "all_to_all"
COLLECTIVES = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)


def bus_factor(collective: str, ranks: int) -> float | None:
    """Bus bandwidth over algorithm bandwidth; None for one rank, where no byte crosses a bus.

    2(n-1)/n for an all-reduce, (n-1)/n for the other three. ValueError for any other name.
    """
    if collective not in COLLECTIVES:
        raise ValueError(f"no collective {collective!r}; known: {', '.join(COLLECTIVES)}")
    if ranks < 2:
        return None
    return (2 if collective == ALL_REDUCE else 1) * (ranks - 1) / ranks


def algbw_gb_s(size_bytes: int, seconds: float) -> float:
    """Algorithm bandwidth in GB/s: payload bytes over the slowest rank's time."""
    if seconds <= 0:
        raise ValueError(f"a collective cannot take {seconds} s")
    return size_bytes / seconds / 1e9


def busbw_gb_s(size_bytes: int, seconds: float, ranks: int, collective: str = ALL_REDUCE) -> float | None:
    """Bus bandwidth in GB/s; None for one rank."""
    factor = bus_factor(collective, ranks)
    return None if factor is None else algbw_gb_s(size_bytes, seconds) * factor
