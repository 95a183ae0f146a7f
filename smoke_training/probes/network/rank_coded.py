"""Rank-coded contents: exact results of collectives, and the rank that a wrong element accuses (pure).

Every rank contributes 48-bit words that depend on rank, chunk, salt and place, so that the words of two ranks
at one place have nothing in common. An int64 sum of up to 2^14 of them is exact.

A wrong sum is explained for every rank by what must have happened to *its* word: it is missing, it came
twice, or some of its bits were changed. The true event is the same in every error of one fault; the false
ones differ. With one bit per rank (1 << rank) a flipped bit would accuse the rank to which it belongs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

BITS = 48
PERIOD = 64  # words repeat after so many places: a wrong element is still placed by its chunk
MISSING, TWICE = -1, -2  # explanations other than a set of changed bits
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Error:
    """A wrong sum: the chunk, salt and place of its words, and found minus expected."""

    chunk: int
    salt: int
    place: int
    excess: int


@lru_cache(maxsize=1024)
def words(rank: int, chunk: int, salt: int = 0) -> tuple[int, ...]:
    """Return the contribution of `rank` to `chunk`: one period of words, repeated over its elements."""
    stem = _mixed(_mixed(rank << 32 | chunk) ^ salt)
    return tuple(_mixed(stem ^ place) >> (64 - BITS) for place in range(PERIOD))


def sums(ranks: int, chunk: int, salt: int = 0) -> tuple[int, ...]:
    """Return the exact sums over all ranks: one period."""
    return tuple(map(sum, zip(*(words(rank, chunk, salt) for rank in range(ranks)), strict=True)))


def suspects(errors: Iterable[Error], ranks: int) -> tuple[int, ...]:
    """Return the ranks that explain wrong sums best: by the fewest events, then the fewest changed bits.

    Several when they explain them equally well; more errors then separate them. None when no rank explains
    two errors alike nor every one by a single changed bit: then the sums are arbitrary.
    """
    known = list(dict.fromkeys(errors))
    if not known:
        return ()
    costs = {rank: _cost(known, rank) for rank in range(ranks)}
    different, bits = best = min(costs.values())
    if different == len(known) and bits > len(known):
        return ()
    return tuple(rank for rank, cost in costs.items() if cost == best)


def chunk_of(index: int, elements: int, ranks: int) -> int:
    """Return the index of the part (of `ranks` equal ones) of an element; a ring reduces part by part."""
    return min(index * ranks // elements, ranks - 1)


def _cost(errors: Sequence[Error], rank: int) -> tuple[int, int]:
    """(different events, changed bits in all) by which errors would be this rank's."""
    events = [_event(error, rank) for error in errors]
    return len(set(events)), sum(1 if event < 0 else event.bit_count() for event in events)


def _event(error: Error, rank: int) -> int:
    """Return the event that explains the rank's word: MISSING, TWICE, or the bits that were changed."""
    word = words(rank, error.chunk, error.salt)[error.place]
    if error.excess == -word:
        return MISSING
    if error.excess == word:
        return TWICE
    changed = word + error.excess
    # A word cannot have become negative: its many bits are counted, so that this explanation ranks low.
    return word ^ (changed if changed >= 0 else ~changed | 1 << 63)


def _mixed(value: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014)."""
    value = (value + 1) * 0x9E3779B97F4A7C15 & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
