"""Time repetitions on one rank, with the thread's waiting for a CPU; handle unknown values."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from smoke_training.runtime import host

T = TypeVar("T")
N = TypeVar("N", int, float)


class Series:
    """One value per repetition, in seconds: elapsed, CPU time of the thread, time it waited for a CPU.

    The waiting is that of the thread that created the series, runnable, for a CPU; None where the kernel does
    not report it.
    """

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.queue: list[float | None] = []
        self._clock = host.QueueClock()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time the block as one more repetition, whether or not it raises."""
        queued, cpu, began = self._clock.waited(), time.thread_time(), time.perf_counter()
        try:
            yield
        finally:
            self.wall.append(time.perf_counter() - began)
            self.cpu.append(time.thread_time() - cpu)
            self.queue.append(difference(queued, self._clock.waited()))

    def skip(self) -> None:
        """Count a repetition without work of this rank."""
        for values in (self.wall, self.cpu, self.queue):
            values.append(0.0)


@contextmanager
def without_collection() -> Iterator[None]:
    """Collect garbage before the block and disable it inside."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def difference(before: N | None, after: N | None) -> N | None:
    """Return a counter's difference between two readings, at least 0; None if either is unknown."""
    return None if before is None or after is None else max(0, after - before)


def complete(values: Sequence[T | None]) -> tuple[T, ...] | None:
    """Return all values; None if one is unknown."""
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None
