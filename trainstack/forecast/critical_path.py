"""The critical path: the longest path of dependent steps through an acyclic graph."""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Step:
    """A step of some seconds, which begins when the steps in `after` are done."""

    key: str
    seconds: float
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class CriticalPath:
    """The steps that determine the total duration, first to last, and the sum of their seconds."""

    seconds: float
    steps: tuple[Step, ...]


def longest(steps: Iterable[Step]) -> CriticalPath:
    """The critical path without a limit of parallel steps; linear in steps and edges.

    Keys in `after` that are no steps count as done. Of equally long paths it is the one with the smallest
    keys. Raises ValueError for a circle (graphlib.CycleError) or a duplicate key.
    """
    by_key: dict[str, Step] = {}
    for step in steps:
        if step.key in by_key:
            raise ValueError(f"{step.key} is a duplicate key")
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
