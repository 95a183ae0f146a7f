"""From which checkpoint to resume, from what all ranks found (pure)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one rank found of its part of one step; `fault` is None when it proved complete."""

    rank: int
    node: int
    step: int
    path: str
    fault: str | None
    readable: bool = True


@dataclass(frozen=True, kw_only=True)
class Choice:
    """From which step to resume, and what is wrong with newer ones."""

    step: int | None  # the newest that proves complete on all ranks; None if there is none
    committed: int | None  # the newest that all ranks had once completed
    damaged: tuple[Part, ...]  # parts of committed steps that prove complete no more
    unreadable: tuple[Part, ...]  # parts of any step that the operating system does not let us read


def choose(parts: Iterable[Part], committed: Collection[int], ranks: int) -> Choice:
    """Resolve what all ranks found. A step counts only if every one of `ranks` ranks brings a proven part."""
    known = list(parts)
    whole: dict[int, set[int]] = {}
    for part in known:
        if part.fault is None:
            whole.setdefault(part.step, set()).add(part.rank)
    complete = [step for step, owners in whole.items() if len(owners) == ranks]
    broken = [part for part in known if part.fault is not None]
    order = sorted(broken, key=lambda part: (-part.step, part.rank))
    return Choice(
        step=max(complete, default=None),
        committed=max([*committed, *complete], default=None),
        damaged=tuple(part for part in order if part.readable and part.step in committed),
        unreadable=tuple(part for part in order if not part.readable),
    )
