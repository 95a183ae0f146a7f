"""Seconds of repetitions on one rank, and how much of them the thread ran or waited for a CPU."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from smoke_training.runtime import host


class Series:
    """One value per repetition, in seconds: elapsed, CPU time of the thread, time it waited for a CPU.

    The waiting is that of the thread that made the series, runnable, for a CPU that something else held; None
    where the kernel does not say.
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
        """Count a repetition in which this rank had nothing to do."""
        self.wall.append(0.0)
        self.cpu.append(0.0)
        self.queue.append(0.0)


def difference(before: float | None, after: float | None) -> float | None:
    """What a counter counted between two readings; None if either is unknown."""
    return None if before is None or after is None else after - before
