"""The programs of a job, one on each of its machines: their lines, their ends, their limits."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Generic, TypeVar

from rehearsal.jobs.log_store import Tail
from rehearsal.jobs.running.machine import JobMachine

Keep = Callable[[str, list[str]], None]
"""Keeps lines of a log stream."""

MachineT = TypeVar("MachineT", bound=JobMachine)


class Programs(Generic[MachineT]):
    """What runs on machines; `streams` are the names of their log streams."""

    def __init__(self, machines: Sequence[MachineT], streams: Sequence[str], keep: Keep) -> None:
        self._machines, self._keep = list(machines), keep
        self._tails: Mapping[str, Tail] = {
            stream: Tail(machine.log) for stream, machine in zip(streams, machines, strict=True)
        }

    def failed(self) -> tuple[MachineT, int] | None:
        """The first machine whose program ended with another code than 0, and the code."""
        for machine in self._machines:
            code = machine.exit_code()
            if code:
                return machine, code
        return None

    def over(self) -> bool:
        """Whether all have ended."""
        return all(machine.exit_code() is not None for machine in self._machines)

    def collect(self, *, rest: bool = False) -> None:
        """Move what they have written to their log streams; with `rest`, a line without an end too."""
        for stream, tail in self._tails.items():
            lines = tail.lines(rest=rest)
            if lines:
                self._keep(stream, lines)

    def stop(self) -> None:
        """Ask for an orderly end; after the grace period everything is killed."""
        for machine in self._machines:
            machine.stop()

    def end(self) -> None:
        """End everything at once, and keep the last lines."""
        for machine in self._machines:
            machine.kill()
        self.collect(rest=True)


class Due(Enum):
    """What time brings about."""

    INTERRUPTED = auto()
    TOO_LONG = auto()
    WAITED = auto()


class ProgramLimits:
    """When programs that run now have to end: seconds from now, None for never."""

    def __init__(
        self, *, run_s: float, wait_s: float | None = None, interruption_s: float | None = None
    ) -> None:
        now = self._began = time.monotonic()
        self._ends = {
            Due.INTERRUPTED: now + (math.inf if interruption_s is None else interruption_s),
            Due.TOO_LONG: now + run_s,
            Due.WAITED: now + (math.inf if wait_s is None else wait_s),
        }

    def interrupt(self, after_s: float) -> None:
        """The machines are taken back after so many seconds of running, at once where they are over."""
        self._ends[Due.INTERRUPTED] = self._began + after_s

    def due(self) -> Due | None:
        """What has to happen now, None for nothing."""
        now = time.monotonic()
        return next((due for due, end in self._ends.items() if now >= end), None)
