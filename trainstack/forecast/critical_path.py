"""How long steps take that wait for each other: the longest path through a graph without circles."""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Step:
    """Something that takes `seconds` once everything it is `after` is done."""

    key: str
    seconds: float
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class CriticalPath:
    """The steps that decide how long everything takes, first to last, and the sum of their seconds."""

    seconds: float
    steps: tuple[Step, ...]


def longest(steps: Iterable[Step]) -> CriticalPath:
    """The critical path, were there no limit to how much is done at once; linear in steps and edges.

    What a step is after but is no step itself is done already. Of equally long paths it is the one with the
    smallest keys. Raises ValueError for a circle (graphlib.CycleError) or a key that is there twice.
    """
    by_key: dict[str, Step] = {}
    for step in steps:
        if step.key in by_key:
            raise ValueError(f"{step.key} is there twice")
        by_key[step.key] = step
    end: dict[str, float] = {}
    before: dict[str, str | None] = {}
    after = {key: [one for one in step.after if one in by_key] for key, step in by_key.items()}
    for key in TopologicalSorter(after).static_order():
        step = by_key[key]
        last = max(sorted(after[key]), key=lambda one: end[one], default=None)
        before[key] = last if last is not None and end[last] > 0 else None
        end[key] = step.seconds + (end[last] if last is not None else 0.0)
    if not end:
        return CriticalPath(0.0, ())
    at: str | None = max(sorted(end), key=lambda key: end[key])
    assert at is not None
    seconds, path = end[at], []
    while at is not None:
        path.append(by_key[at])
        at = before[at]
    return CriticalPath(seconds, tuple(reversed(path)))
