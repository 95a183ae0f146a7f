"""Exact, rank-coded contents through every collective and size."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.probes.group import Gang
from smoke_training.probes.network import operations
from smoke_training.probes.network import words as payload
from smoke_training.probes.network.words import Error

LIMIT = 1 << 22  # bytes: the exact check is about correctness, the sweep is about speed
LISTED = 64  # wrong elements looked at per rank and size: enough to tell who, few enough to be quick
WORD = 8  # bytes of an int64
SUMS = (ALL_REDUCE, REDUCE_SCATTER)
ROUNDS = 48  # of one more exchange each, while wrong sums fit more than one rank


@dataclass(frozen=True)
class Bad:
    """What one rank received wrongly in one exchange."""

    rank: int
    elements: int
    errors: tuple[Error, ...]  # of sums only
    chunks: tuple[int, ...]


def check(gang: Gang, name: str, sizes: Sequence[int]) -> dict[str, object]:
    """The `payload` evidence of one collective: wrong elements by receiving rank and size."""
    found: list[tuple[int, Bad]] = []
    elements = 0
    for size in sizes:
        part = _part(gang, size)
        found += [(size, bad) for bad in _exchanged(gang, name, part, size)]
        elements += gang.world * (part if name == REDUCE_SCATTER else part * gang.world)
    accused = _accused(gang, name, found)
    wrong = [
        {
            "rank": bad.rank,
            "size": size,
            "elements": bad.elements,
            # Of what is gathered, every part is one sender's own: no sum hides whose it is.
            "accused": list(accused if name in SUMS else bad.chunks),
            "chunks": list(bad.chunks),
        }
        for size, bad in found
    ]
    return {"kind": "payload", "name": name, "sizes": list(sizes), "elements": elements, "wrong": wrong}


def _part(gang: Gang, size: int) -> int:
    """Words per rank."""
    return max(1, min(size, LIMIT) // WORD // gang.world)


def _accused(gang: Gang, name: str, found: Sequence[tuple[int, Bad]]) -> tuple[int, ...]:
    """Who changed wrong sums; further exchanges with other words tell apart whom these fit equally well.

    Every rank holds the same errors and so stops after the same exchange.
    """
    errors = [error for _, bad in found for error in bad.errors]
    if not errors:
        return ()
    size = found[0][0]
    for extra in range(1, ROUNDS + 1):
        accused = payload.suspects(errors, gang.world)
        if len(accused) == 1 and len(set(errors)) > 1:
            break
        again = _exchanged(gang, name, _part(gang, size), size + extra)
        errors += [error for bad in again for error in bad.errors]
    return payload.suspects(errors, gang.world)


def _exchanged(gang: Gang, name: str, part: int, salt: int) -> list[Bad]:
    """One exchange; what every rank that received something wrong received."""
    got, expected = _exchange(gang, name, part, salt)
    found = gang.gather(_bad(gang, name, salt, (got, expected)))
    return [item for item in found if isinstance(item, Bad)]


def _bad(gang: Gang, name: str, salt: int, pair: tuple[Tensor, Tensor]) -> Bad | None:
    got, expected = pair
    bad = (got != expected).nonzero().flatten()
    if not bad.numel():
        return None
    listed = [int(index) for index in bad[:LISTED].tolist()]
    errors: tuple[Error, ...] = ()
    if name in SUMS:
        coded = gang.rank if name == REDUCE_SCATTER else 0
        errors = tuple(
            Error(coded, salt, index % payload.PERIOD, int(got[index]) - int(expected[index]))
            for index in listed
        )
    if name == REDUCE_SCATTER:
        chunks = {gang.rank}
    else:
        chunks = {payload.chunk_of(index, got.numel(), gang.world) for index in listed}
    return Bad(gang.rank, int(bad.numel()), errors, tuple(sorted(chunks)))


def _exchange(gang: Gang, name: str, part: int, salt: int) -> tuple[Tensor, Tensor]:
    """Run one collective over `part` words per rank; what arrived and what should have."""
    ranks, mine = range(gang.world), gang.rank
    if name == ALL_REDUCE:
        whole = part * gang.world
        buffer = _filled(gang, payload.words(mine, 0, salt), whole)
        operations.all_reduce(buffer)
        return buffer, _filled(gang, payload.sums(gang.world, 0, salt), whole)
    if name == ALL_GATHER:
        got = torch.zeros(part * gang.world, dtype=torch.int64, device=gang.device)
        operations.all_gather(got, _filled(gang, payload.words(mine, 0, salt), part))
        return got, torch.cat([_filled(gang, payload.words(rank, 0, salt), part) for rank in ranks])
    sent = torch.cat([_filled(gang, payload.words(mine, rank, salt), part) for rank in ranks])
    if name == REDUCE_SCATTER:
        got = torch.zeros(part, dtype=torch.int64, device=gang.device)
        operations.reduce_scatter(got, sent)
        return got, _filled(gang, payload.sums(gang.world, mine, salt), part)
    if name == ALL_TO_ALL:
        got = torch.zeros_like(sent)
        operations.all_to_all(got, sent)
        return got, torch.cat([_filled(gang, payload.words(rank, mine, salt), part) for rank in ranks])
    raise ValueError(f"no collective {name!r}")


def _filled(gang: Gang, pattern: tuple[int, ...], elements: int) -> Tensor:
    """The pattern repeated over so many int64 elements."""
    words = torch.tensor(pattern, dtype=torch.int64, device=gang.device)
    return words.repeat(payload.repeated(pattern, elements))[:elements].contiguous()
