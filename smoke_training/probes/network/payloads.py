"""Exact, rank-coded contents through every collective and size."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from smoke_training.evidence.fabric import Payload, Wrong
from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from smoke_training.probes.group import Group
from smoke_training.probes.network import operations
from smoke_training.probes.network import words as payload
from smoke_training.probes.network.words import Error

LIMIT = 1 << 22  # bytes: the exact check is about correctness, the sweep is about speed
LISTED = 64  # wrong elements looked at per rank and size: enough to find the rank, few enough to be quick
WORD = 8  # bytes of an int64
SUMS = (ALL_REDUCE, REDUCE_SCATTER)
ROUNDS = 48  # of one more exchange each, while wrong sums fit more than one rank


@dataclass(frozen=True)
class Bad:
    """What one rank received wrongly in one exchange."""

    wrong: Wrong  # of what is gathered, every part is one sender's own: no sum hides whose it is
    errors: tuple[Error, ...]  # of sums only


def check(group: Group, name: str, sizes: Sequence[int]) -> Payload:
    """The `payload` evidence of one collective: wrong elements by receiving rank and size."""
    found: list[Bad] = []
    elements = 0
    for size in sizes:
        part = _part(group, size)
        found += _exchanged(group, name, part, size)
        elements += group.world * (part if name == REDUCE_SCATTER else part * group.world)
    wrong = [bad.wrong for bad in found]
    if name in SUMS:
        accused = _accused(group, name, found)
        wrong = [replace(item, accused=accused) for item in wrong]
    return Payload(name=name, sizes=tuple(sizes), elements=elements, wrong=tuple(wrong))


def _part(group: Group, size: int) -> int:
    """Words per rank."""
    return max(1, min(size, LIMIT) // WORD // group.world)


def _accused(group: Group, name: str, found: Sequence[Bad]) -> tuple[int, ...]:
    """Identify the rank that changed sums; repeat with other words while several fit equally well.

    Every rank holds the same errors and so stops after the same exchange.
    """
    errors = [error for bad in found for error in bad.errors]
    if not errors:
        return ()
    size = found[0].wrong.size
    for extra in range(1, ROUNDS + 1):
        accused = payload.suspects(errors, group.world)
        if len(accused) == 1 and len(set(errors)) > 1:
            break
        again = _exchanged(group, name, _part(group, size), size + extra)
        errors += [error for bad in again for error in bad.errors]
    return payload.suspects(errors, group.world)


def _exchanged(group: Group, name: str, part: int, salt: int) -> list[Bad]:
    """One exchange; what every rank that received something wrong received."""
    got, expected = _exchange(group, name, part, salt)
    found = group.gather(_bad(group, name, salt, (got, expected)))
    return [item for item in found if item is not None]


def _bad(group: Group, name: str, salt: int, pair: tuple[Tensor, Tensor]) -> Bad | None:
    got, expected = pair
    bad = (got != expected).nonzero().flatten()
    if not bad.numel():
        return None
    listed = [int(index) for index in bad[:LISTED].tolist()]
    errors: tuple[Error, ...] = ()
    if name in SUMS:
        coded = group.rank if name == REDUCE_SCATTER else 0
        errors = tuple(
            Error(coded, salt, index % payload.PERIOD, int(got[index]) - int(expected[index]))
            for index in listed
        )
    if name == REDUCE_SCATTER:
        chunks = {group.rank}
    else:
        chunks = {payload.chunk_of(index, got.numel(), group.world) for index in listed}
    parts = tuple(sorted(chunks))
    wrong = Wrong(rank=group.rank, size=salt, elements=int(bad.numel()), accused=parts, chunks=parts)
    return Bad(wrong, errors)


def _exchange(group: Group, name: str, part: int, salt: int) -> tuple[Tensor, Tensor]:
    """Run one collective over `part` words per rank; what arrived and what should have."""
    ranks, mine = range(group.world), group.rank
    if name == ALL_REDUCE:
        whole = part * group.world
        buffer = _filled(group, payload.words(mine, 0, salt), whole)
        operations.all_reduce(buffer)
        return buffer, _filled(group, payload.sums(group.world, 0, salt), whole)
    if name == ALL_GATHER:
        got = torch.zeros(part * group.world, dtype=torch.int64, device=group.device)
        operations.all_gather(got, _filled(group, payload.words(mine, 0, salt), part))
        return got, torch.cat([_filled(group, payload.words(rank, 0, salt), part) for rank in ranks])
    sent = torch.cat([_filled(group, payload.words(mine, rank, salt), part) for rank in ranks])
    if name == REDUCE_SCATTER:
        got = torch.zeros(part, dtype=torch.int64, device=group.device)
        operations.reduce_scatter(got, sent)
        return got, _filled(group, payload.sums(group.world, mine, salt), part)
    if name == ALL_TO_ALL:
        got = torch.zeros_like(sent)
        operations.all_to_all(got, sent)
        return got, torch.cat([_filled(group, payload.words(rank, mine, salt), part) for rank in ranks])
    raise ValueError(f"no collective {name!r}")


def _filled(group: Group, pattern: tuple[int, ...], elements: int) -> Tensor:
    """The pattern repeated over so many int64 elements."""
    words = torch.tensor(pattern, dtype=torch.int64, device=group.device)
    return words.repeat(payload.repeated(pattern, elements))[:elements].contiguous()
