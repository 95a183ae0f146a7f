"""Observe a node's ranks from outside: processes, heartbeats, silence."""

import dataclasses
import itertools
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from smoke_training.runtime import heartbeat, processes
from smoke_training.runtime.heartbeat import Beat
from smoke_training.runtime.processes import ProcessState

LOOK_AT_MOST_S = 1.0  # of a gap between two looks: beyond it this launcher itself was not running
BUSY_CPU_SHARE = 0.1
ATTEMPTS = 2  # torchrun restarts all ranks once
LOG_TAIL_BYTES = 64 * 1024
# torch 2.13, distributed/elastic/multiprocessing/api.py (SubprocessContext._poll) and errors/__init__.py.
_ENDED = re.compile(
    r"(?:\(local_rank: (\d+)\)\s+)?exitcode\s*:\s*(-?\d+)\)?\s+(?:local_rank: (\d+) )?\(pid: (\d+)\)"
)
_CLOSED = re.compile(r"Sending process (\d+) closing signal")


@dataclass(frozen=True, kw_only=True)
class Vital:
    """One rank as observed by its launcher. Seconds count from its last heartbeat, in observed time.

    `busy_s` of `idle_s` it computed, waited for a CPU or for a device; `stopped_s` it was stopped by a
    signal. `gone`: its process has ended; `code` is its exit status or the negative number of the signal
    that ended it, None when unknown. `closed`: torchrun ended it, after another rank. A rank that has not
    started has attempt -1.
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
    closed: bool = False

    @property
    def signal(self) -> int | None:
        """The signal that ended it, None when there was none or it is unknown."""
        return -self.code if self.code is not None and self.code < 0 else None


@dataclass(frozen=True, kw_only=True)
class EndedRank:
    """One process in torchrun's log; `code` is its exit status, negative for a signal."""

    pid: int
    local_rank: int | None
    code: int


class Vitals:
    """The ranks of one node: one `Vital` for every attempt of every rank, updated by `look`."""

    def __init__(self, folder: Path, ranks: Sequence[int], log: Path) -> None:
        self._log, self._first = log, min(ranks, default=0)
        self._watches = [
            _Watch(rank, attempt, heartbeat.path_of(folder, rank, attempt))
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
            self._explain(_text(self._log))
        found = [watch.vital for watch in self._watches]
        started = {vital.rank for vital in found if vital.attempt >= 0}
        return [
            vital
            for number, vital in enumerate(found)
            if vital.attempt >= 0 or (vital.rank not in started and number % ATTEMPTS == 0)
        ]

    def _explain(self, log: str) -> None:
        """Set the codes of ended ranks; a process without a heartbeat is an attempt that has none."""
        ended, closed = ended_ranks(log), {int(pid) for pid in _CLOSED.findall(log)}
        codes = {item.pid: item.code for item in ended}
        for watch in self._watches:
            watch.ended_with(codes, closed)
        known = {watch.vital.pid for watch in self._watches}
        for item in ended:
            if item.local_rank is None or item.pid in known:
                continue
            rank = self._first + item.local_rank
            silent = (w for w in self._watches if w.vital.rank == rank and w.vital.pid is None)
            for watch in itertools.islice(silent, 1):
                watch.ended_unseen(item)
                known.add(item.pid)


class _Watch:
    """One attempt of one rank over time."""

    def __init__(self, rank: int, attempt: int, path: Path) -> None:
        self.vital = Vital(rank=rank)
        self._attempt, self._path = attempt, path
        self._beat: Beat | None = None
        self._started: int | None = None
        self._cpu_s = 0.0
        self._code: int | None = None
        self._closed = False

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
        """True if it ended, or if its first attempt has not sent a heartbeat: others begin after an end."""
        return self.vital.gone or (self.vital.pid is None and self._attempt == 0)

    def ended_with(self, codes: Mapping[int, int], closed: Container[int]) -> None:
        """Set what torchrun's log has about this process."""
        if self.vital.gone and self.vital.pid is not None:
            self._code = codes.get(self.vital.pid) if self._code is None else self._code
            self._closed = self.vital.pid in closed
            self.vital = dataclasses.replace(self.vital, code=self._code, closed=self._closed)

    def ended_unseen(self, ended: EndedRank) -> None:
        """Set the end of a process that sent no heartbeat."""
        self._code = ended.code
        known = dataclasses.replace(self.vital, pid=ended.pid, attempt=self._attempt, phase="start")
        self.vital = dataclasses.replace(known, gone=True, code=ended.code)

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
            state=state,
            **(vars(beat) | {"status": beat.status.name}),
            idle_s=round(idle, 3),
            busy_s=round(busy, 3),
            stopped_s=round(stopped, 3),
            longest_idle_s=max(before.longest_idle_s, round(idle, 3)),
            gone=gone,
            code=self._code,
            closed=self._closed,
        )


def ended_ranks(log: str) -> list[EndedRank]:
    """Return the ranks that ended, from torchrun's lines about them, in the order of the log."""
    return [
        EndedRank(pid=int(pid), local_rank=int(before or after) if before or after else None, code=int(code))
        for before, code, after, pid in _ENDED.findall(log)
    ]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""
