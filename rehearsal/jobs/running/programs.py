"""The programs of a job, one per machine: log lines, exit codes, limits."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Generic, TypeVar

from rehearsal.jobs.log_store import Tail
from rehearsal.jobs.running.machine import MachineProcess

Keep = Callable[[str, list[str]], None]
"""Stores lines of a log stream."""

MachineT = TypeVar("MachineT", bound=MachineProcess)


class Programs(Generic[MachineT]):
    """Programs that run on machines; `streams` are the names of their log streams."""

    def __init__(self, machines: Sequence[MachineT], streams: Sequence[str], keep: Keep) -> None:
        self._machines, self._keep = list(machines), keep
        self._tails: Mapping[str, Tail] = {
            stream: Tail(machine.log) for stream, machine in zip(streams, machines, strict=True)
        }

    def failed(self) -> tuple[MachineT, int] | None:
        """The first machine whose program exited with a code other than 0, and the code."""
        for machine in self._machines:
            code = machine.exit_code()
            if code:
                return machine, code
        return None

    def over(self) -> bool:
        """Return whether all programs have ended."""
        return all(machine.exit_code() is not None for machine in self._machines)

    def collect(self, *, rest: bool = False) -> None:
        """Move new output to the log streams; with `rest`, also a last line without a line break."""
        for stream, tail in self._tails.items():
            lines = tail.lines(rest=rest)
            if lines:
                self._keep(stream, lines)

    def stop(self) -> None:
        """Send SIGTERM to all; after the grace period they are killed."""
        for machine in self._machines:
            machine.stop()

    def end(self) -> None:
        """Kill all programs and store their last lines."""
        for machine in self._machines:
            machine.kill()
        self.collect(rest=True)


class Due(Enum):
    """Reason for which programs must end."""

    INTERRUPTED = auto()
    TOO_LONG = auto()
    WAITED = auto()


class ProgramLimits:
    """Times at which running programs must end: seconds from now, None for never."""

    def __init__(self, *, run_s: float, wait_s: float | None = None) -> None:
        now = self._began = time.monotonic()
        self._ends = {
            Due.INTERRUPTED: math.inf,
            Due.TOO_LONG: now + run_s,
            Due.WAITED: now + (math.inf if wait_s is None else wait_s),
        }

    def interrupt(self, after_s: float) -> None:
        """Interrupt the machines after so many seconds of running; at once where that time has passed."""
        self._ends[Due.INTERRUPTED] = self._began + after_s

    def due(self) -> Due | None:
        """The limit that has been reached, if any."""
        now = time.monotonic()
        return next((due for due, end in self._ends.items() if now >= end), None)
