"""Observe a node's ranks from outside: processes, heartbeats, silence."""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from smoke_training.runtime import heartbeat, processes
from smoke_training.runtime.heartbeat import Beat, Status
from smoke_training.runtime.processes import ProcessState

LOOK_AT_MOST_S = 1.0  # of a gap between two looks: beyond it this launcher itself was not running
BUSY_CPU_SHARE = 0.1
ATTEMPTS = 2  # torchrun restarts all ranks once
LOG_TAIL_BYTES = 64 * 1024
# torch 2.13, distributed/elastic/multiprocessing/api.py (SubprocessContext._poll) and errors/__init__.py.
_ENDED = re.compile(r"exitcode\s*:\s*(-?\d+)\)?\s+(?:local_rank: \d+ )?\(pid: (\d+)\)")


@dataclass(frozen=True, kw_only=True)
class Vital:
    """One rank as observed by its launcher. Seconds count from its last heartbeat, in observed time.

    `busy_s` of `idle_s` it computed, waited for a CPU or for a device; `stopped_s` it was stopped by a
    signal. `gone`: its process has ended; `code` is its exit status or the negative number of the signal
    that ended it, None when unknown. A rank that has not started has attempt -1.
    """

    rank: int
    pid: int | None = None
    state: str | None = None
    status: str = "RUNNING"
    attempt: int = -1
    sequence: int = 0
    beats: int = 0
    phase: str = ""
    words: str = ""
    idle_s: float = 0.0
    busy_s: float = 0.0
    stopped_s: float = 0.0
    longest_idle_s: float = 0.0
    gone: bool = False
    code: int | None = None

    @property
    def signal(self) -> int | None:
        """The signal that ended it, None when there was none or it is unknown."""
        return -self.code if self.code is not None and self.code < 0 else None


class Vitals:
    """The ranks of one node: one `Vital` for every attempt of every rank, updated by `look`."""

    def __init__(self, folder: Path, ranks: Iterable[int], log: Path) -> None:
        self._log = log
        self._watches = [
            _Watch(rank, heartbeat.path_of(folder, rank, attempt))
            for rank in ranks
            for attempt in range(ATTEMPTS)
        ]
        self._looked: float | None = None

    def look(self, now: float) -> list[Vital]:
        """Return the current state of the ranks, in order; `now` is a monotonic time in seconds."""
        passed = min(now - self._looked, LOOK_AT_MOST_S) if self._looked is not None else 0.0
        self._looked = now
        for watch in self._watches:
            watch.look(passed)
        if any(watch.unexplained for watch in self._watches):
            codes = exit_codes(_text(self._log))
            for watch in self._watches:
                watch.ended_with(codes)
        found = [watch.vital for watch in self._watches]
        started = {vital.rank for vital in found if vital.attempt >= 0}
        return [
            vital
            for number, vital in enumerate(found)
            if vital.attempt >= 0 or (vital.rank not in started and number % ATTEMPTS == 0)
        ]


class _Watch:
    """One attempt of one rank over time."""

    def __init__(self, rank: int, path: Path) -> None:
        self.vital = Vital(rank=rank)
        self._path = path
        self._beat: Beat | None = None
        self._started: int | None = None
        self._cpu_s = 0.0
        self._code: int | None = None

    def look(self, passed: float) -> None:
        beat = heartbeat.read(self._path) or self._beat
        if beat is None:
            return
        process = processes.state_of(beat.pid)
        if self._beat is None:
            self._started, self._cpu_s = (process.started, process.cpu_s) if process else (None, 0.0)
        if process is not None and process.started != self._started:
            process = None  # the number was reused by another process
        fresh = self._beat is None or beat.beats != self._beat.beats
        self._beat = beat
        if process is not None and process.code is not None:
            self._code = process.code
        self.vital = self._see(beat, process, passed, fresh)

    @property
    def unexplained(self) -> bool:
        """True if it ended and its exit code is unknown."""
        return self.vital.gone and self.vital.code is None and self.vital.status == Status.RUNNING.name

    def ended_with(self, codes: dict[int, int]) -> None:
        """Set the exit code from torchrun's log, if it names this process."""
        if self.vital.gone and self._code is None:
            self._code = codes.get(self.vital.pid or -1)
            self.vital = dataclasses.replace(self.vital, code=self._code)

    def _see(self, beat: Beat, process: ProcessState | None, passed: float, fresh: bool) -> Vital:
        before = self.vital
        gone = process is None or process.ended
        state = process.state if process else None
        idle = busy = stopped = 0.0
        if not fresh and not gone:
            idle = before.idle_s + passed
            used = process.cpu_s - self._cpu_s if process else 0.0
            working = state in ("R", "D") or used > BUSY_CPU_SHARE * passed
            busy = before.busy_s + (passed if working else 0.0)
            stopped = before.stopped_s + passed if state in ("T", "t") else 0.0
        if process is not None:
            self._cpu_s = process.cpu_s
        return Vital(
            rank=before.rank,
            pid=beat.pid,
            state=state,
            status=beat.status.name,
            attempt=beat.attempt,
            sequence=beat.sequence,
            beats=beat.beats,
            phase=beat.phase,
            words=beat.words,
            idle_s=round(idle, 3),
            busy_s=round(busy, 3),
            stopped_s=round(stopped, 3),
            longest_idle_s=max(before.longest_idle_s, round(idle, 3)),
            gone=gone,
            code=self._code,
        )


def exit_codes(log: str) -> dict[int, int]:
    """Return exit codes by process number, negative for signals, from torchrun's lines about ended ranks."""
    return {int(pid): int(code) for code, pid in _ENDED.findall(log)}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
