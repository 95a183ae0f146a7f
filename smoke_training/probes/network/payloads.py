"""Exact, rank-coded contents through every collective and size, the largest included.

Some errors occur in large messages only, and sums of the timed sweeps' random numbers are not exact.
Expected values are computed piece by piece, so that no size needs more memory than its sweep.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from smoke_training.evidence.fabric import Payload, Wrong
from smoke_training.formulae.bandwidth import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from smoke_training.probes.group import Group
from smoke_training.probes.network import operations
from smoke_training.probes.network.rank_coded import PERIOD, Error, chunk_of, sums, suspects, words

LISTED = 64  # wrong elements looked at per rank and size: enough to find the rank, few enough to be quick
WORD = 8  # bytes of an int64
PIECE = 1 << 24  # words compared at a time: whole periods, and few enough for every kernel to count them
SUMS = (ALL_REDUCE, REDUCE_SCATTER)
ALIKE = (ALL_REDUCE, ALL_GATHER)  # a rank sends the same words to all
ROUNDS = 48  # maximum exchanges while wrong sums fit more than one rank


Bad = tuple[Wrong, tuple[Error, ...]]
"""Wrong elements that one rank received in one exchange; errors of sums only.

In a gathered array every part belongs to one sender.
"""


def check(group: Group, name: str, sizes: Sequence[int]) -> Payload:
    """Return the `payload` evidence of one collective: wrong elements by receiving rank and size."""
    found: list[Bad] = []
    elements = 0
    for size in sizes:
        found += _exchanged(group, name, _part(group, size), size)
        elements += group.world * operations.lengths(name, _part(group, size), group.world)[0]
        group.beat()
    wrong = [item for item, _ in found]
    if name in SUMS:
        accused = _accused(group, name, found)
        wrong = [replace(item, accused=accused) for item in wrong]
    return Payload(name=name, sizes=tuple(sizes), elements=elements, wrong=tuple(wrong))


def _part(group: Group, size: int) -> int:
    return max(1, size // WORD // group.world)


def _accused(group: Group, name: str, found: Sequence[Bad]) -> tuple[int, ...]:
    """Identify the rank that changed sums; repeat with other words while several fit equally well.

    Every rank has the same errors and so stops after the same exchange.
    """
    errors = [error for _, errors in found for error in errors]
    if not errors:
        return ()
    size = found[0][0].size
    for extra in range(1, ROUNDS + 1):
        if len(suspects(errors, group.world)) == 1 and len(set(errors)) > 1:
            break
        again = _exchanged(group, name, _part(group, size), size + extra)
        errors += [error for _, more in again for error in more]
    return suspects(errors, group.world)


def _exchanged(group: Group, name: str, part: int, salt: int) -> list[Bad]:
    return [item for item in group.gather(_bad(group, name, part, salt)) if item is not None]


def _bad(group: Group, name: str, part: int, salt: int) -> Bad | None:
    ranks = range(group.world)
    chunk = 0 if name in ALIKE else group.rank  # of the words for this rank
    targets = [words(group.rank, target, salt) for target in ([0] if name in ALIKE else ranks)]
    length, given = operations.lengths(name, part, group.world)
    sent = torch.empty(given, dtype=torch.int64, device=group.device)
    for pattern, room in zip(targets, sent.chunk(len(targets)), strict=True):
        _fill(room, pattern)
    got = sent if name == ALL_REDUCE else torch.zeros(length, dtype=sent.dtype, device=group.device)
    operations.CALLS[name](got, sent)
    expected = [sums(group.world, chunk, salt)]
    if name not in SUMS:
        expected = [words(rank, chunk, salt) for rank in ranks]
    count, listed = _differences(got, expected)
    if not count:
        return None
    errors = [Error(chunk, salt, index % PERIOD, excess) for index, excess in listed]
    parts = {chunk_of(index, length, group.world) for index, _ in listed}
    chunks = (group.rank,) if name == REDUCE_SCATTER else tuple(sorted(parts))
    wrong = Wrong(rank=group.rank, size=salt, elements=count, accused=chunks, chunks=chunks)
    return wrong, tuple(errors) if name in SUMS else ()


def _fill(room: Tensor, pattern: tuple[int, ...]) -> None:
    period = torch.tensor(pattern, dtype=room.dtype, device=room.device)
    whole = room.numel() // PERIOD * PERIOD
    room[:whole].view(-1, PERIOD).copy_(period.expand(whole // PERIOD, PERIOD))
    room[whole:] = period[: room.numel() - whole]


def _differences(got: Tensor, patterns: Sequence[tuple[int, ...]]) -> tuple[int, list[tuple[int, int]]]:
    """Count wrong words of equal parts, one of each pattern; of the first ones, index and excess."""
    part, count, listed = got.numel() // len(patterns), 0, list[tuple[int, int]]()
    expected = torch.empty(min(part, PIECE), dtype=got.dtype, device=got.device)
    for number, pattern in enumerate(patterns):
        _fill(expected, pattern)
        for start in range(number * part, (number + 1) * part, PIECE):
            piece = got[start : min(start + PIECE, (number + 1) * part)]
            bad = (piece != expected[: piece.numel()]).nonzero().flatten()
            count += bad.numel()
            for index in bad[: LISTED - len(listed)].tolist():
                listed.append((start + index, int(piece[index]) - int(expected[index])))
    return count, listed
