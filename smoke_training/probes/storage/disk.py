"""Blocks on disk: durable writes, cold reads, and errors of the operating system."""

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from smoke_training.evidence.storage import StorageError
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import complete

CHUNK = 256 << 10
_SHIFTS = 64  # different contents of a chunk, so that no layer can deduplicate them


class BlockFile:
    """A file of `regions` blocks that are written and read one at a time; removed by `close`."""

    def __init__(self, path: Path, regions: int) -> None:
        self.path, self.regions = path, regions
        path.parent.mkdir(parents=True, exist_ok=True)
        self._noise = memoryview(os.urandom(CHUNK + _SHIFTS * 64))
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
        self._room = bytearray(0)

    def write(self, index: int, size: int) -> None:
        """Overwrite region `index % regions` with `size` bytes (a multiple of 256 KiB) and fsync."""
        shift = index % _SHIFTS * 64
        chunk, start = self._noise[shift : shift + CHUNK], index % self.regions * size
        for offset in range(start, start + size, CHUNK):
            written = os.pwrite(self._file, chunk, offset)
            while written < CHUNK:
                written += os.pwrite(self._file, chunk[written:], offset + written)
        os.fsync(self._file)

    def drop_cache(self) -> None:
        """Make the kernel drop the file's pages on this machine; they must be durable already."""
        os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)

    def read(self, index: int, size: int) -> None:
        """Read a region; OSError (EIO) when it ends early."""
        if len(self._room) != size:
            self._room = bytearray(size)
        view, offset = memoryview(self._room), index % self.regions * size
        while view:
            done = os.preadv(self._file, [view], offset)
            if done == 0:
                raise OSError(errno.EIO, "the file ends early", str(self.path))
            view, offset = view[done:], offset + done

    def close(self) -> None:
        """Close and remove the file."""
        os.close(self._file)
        with contextlib.suppress(OSError):
            self.path.unlink()


def resident_share(file: int) -> float | None:
    """Return the share of a file's pages in the page cache by mincore(2); None where unsupported."""
    size = os.fstat(file).st_size
    if size == 0:
        return None
    pages = (size + mmap.PAGESIZE - 1) // mmap.PAGESIZE
    seen = (ctypes.c_ubyte * pages)()
    try:
        with mmap.mmap(file, size, flags=mmap.MAP_SHARED) as memory:
            start = ctypes.c_char.from_buffer(memory)
            status = ctypes.CDLL(None, use_errno=True).mincore(
                ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), seen
            )
            del start  # the mapping cannot be closed while referenced
    except (OSError, ValueError, AttributeError):
        return None
    return sum(page & 1 for page in seen) / pages if status == 0 else None


def forgotten(paths: Iterable[Path]) -> tuple[float, ...] | None:
    """Make files durable, drop their pages from this machine's cache; return the share that stayed.

    None where unsupported.
    """
    shares = []
    for path in paths:
        with path.open("r+b", buffering=0) as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            shares.append(resident_share(file.fileno()))
    return complete(shares)


class Refusals:
    """Operations that the operating system refused to this rank on one storage target.

    They are collected instead of raised: the peers must be informed first.
    """

    def __init__(self, group: Group, phase: str, name: str) -> None:
        self.own: list[StorageError] = []
        self._group, self._phase, self._name = group, phase, name

    @contextlib.contextmanager
    def collected(self, operation: str, path: Path, wanted: int | None = None) -> Iterator[None]:
        """Collect an OSError of the block."""
        try:
            yield
        except OSError as error:
            self.add(error, operation, path, wanted)

    def add(self, error: OSError, operation: str, path: Path, wanted: int | None = None) -> None:
        """Collect an OSError; free bytes are read now, after partial files are removed."""
        number = error.errno or 0
        found = StorageError(
            phase=self._phase,
            name=self._name,
            path=str(path),
            rank=self._group.rank,
            node=self._group.node,
            operation=operation,
            errno=errno.errorcode.get(number, type(error).__name__ if number == 0 else str(number)),
            message=os.strerror(number) if number else str(error),
            bytes_wanted=wanted,
            bytes_free=free_bytes(path),
        )
        self.own.append(found)

    def of_all(self) -> list[StorageError]:
        """Return the first refusal of every rank that has one, the same on all ranks."""
        return [item for items in self._group.gather(self.own[:1]) for item in items]


def free_bytes(path: Path) -> int | None:
    """Return the bytes free for unprivileged users on the file system of a path or its nearest parent."""
    for place in (path, *path.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(place).free
    return None
