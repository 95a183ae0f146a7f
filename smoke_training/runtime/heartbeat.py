"""Heartbeats of one rank: a small record in memory that the launcher reads from outside.

The rank writes into a mapped file, which costs about a microsecond and no system call; the launcher reads
it at any time, also when the rank is stopped. There are two counters:
`sequence` counts the exchanges of the whole process group that this rank has entered, so that of two ranks
in the same attempt the lower one is behind; `beats` counts every heartbeat and is compared with nothing.
"""

import functools
import mmap
import os
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

FOLDER = "SMOKE_HEARTBEATS"  # environment variable: the launcher's folder for these records
_RECORD = struct.Struct("<4sIIIQQ24s200s")  # magic, status, pid, attempt, sequence, beats, phase, words
_CHECKED = struct.Struct("<I")
SIZE = _RECORD.size + _CHECKED.size
_MAGIC = b"SHB1"
_READS_AT_MOST = 5


class Status(IntEnum):
    """Status reported by a rank. A rank that vanishes while RUNNING was killed."""

    RUNNING = 0
    DONE = 1
    BROKE = 2


@dataclass(frozen=True, kw_only=True)
class Beat:
    """One rank's record as read."""

    status: Status
    pid: int
    attempt: int
    sequence: int
    beats: int
    phase: str
    words: str


class Heartbeat:
    """The writing side, in the rank. Without a path every call is a no-op."""

    def __init__(self, path: Path | None, attempt: int = 0) -> None:
        self._attempt, self._sequence, self._beats, self._phase = attempt, 0, 0, b""
        self._status, self._words, self._pid = Status.RUNNING, b"", os.getpid()
        self._memory: mmap.mmap | None = None
        if path is None:
            return
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            os.ftruncate(descriptor, SIZE)
            self._memory = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self._write()

    def phase(self, name: str) -> None:
        """Enter a phase."""
        self._phase = name.encode()[:24]
        self.beat()

    def enter(self) -> None:
        """Count an exchange of all ranks (not of a pair or a group: that is a `beat`)."""
        self._sequence += 1
        self.beat()

    def beat(self) -> None:
        """Count a heartbeat: call it at least every few seconds of work without exchanges."""
        self._beats += 1
        self._write()

    def farewell(self) -> None:
        """Report that the rank is done."""
        self._status = Status.DONE
        self.beat()

    def broke(self, words: str) -> None:
        """Report an exception that ends the rank; works on a full disk, too."""
        self._status, self._words = Status.BROKE, words.encode()[:200]
        self.beat()

    def _write(self) -> None:
        if self._memory is None:
            return
        numbers = self._status, self._pid, self._attempt, self._sequence, self._beats
        record = _RECORD.pack(_MAGIC, *numbers, self._phase, self._words)
        self._memory[:] = record + _CHECKED.pack(zlib.crc32(record))


def path_of(folder: Path, rank: int, attempt: int) -> Path:
    """Return the path of a rank's record: one per attempt, so that a restart keeps the last one's end."""
    return folder / f"rank-{rank}-{attempt}"


@functools.cache
def own() -> Heartbeat:
    """Return this rank's heartbeat, as torchrun's environment describes it; silent outside a launcher."""
    folder, rank = os.environ.get(FOLDER), os.environ.get("RANK")
    if not folder or rank is None:
        return Heartbeat(None)
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    return Heartbeat(path_of(Path(folder), int(rank), attempt), attempt)


def read(path: Path) -> Beat | None:
    """Read the record of a rank; None when absent or incomplete (it is being written)."""
    for _ in range(_READS_AT_MOST):
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        if len(raw) == SIZE and _CHECKED.unpack(raw[_RECORD.size :])[0] == zlib.crc32(raw[: _RECORD.size]):
            return _beat(raw[: _RECORD.size])
    return None


def _beat(raw: bytes) -> Beat | None:
    magic, status, pid, attempt, sequence, beats, phase, text = _RECORD.unpack(raw)
    if magic != _MAGIC or status not in set(Status):
        return None
    return Beat(
        status=Status(status),
        pid=pid,
        attempt=attempt,
        sequence=sequence,
        beats=beats,
        phase=phase.rstrip(b"\0").decode(errors="replace"),
        words=text.rstrip(b"\0").decode(errors="replace"),
    )
