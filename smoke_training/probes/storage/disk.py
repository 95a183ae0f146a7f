"""Blocks on disk: durable writes, cold reads, and what the operating system says when it refuses them."""

import contextlib
import ctypes
import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from smoke_training.evidence.storage import StorageError
from smoke_training.probes.group import Group

CHUNK = 256 << 10
_SHIFTS = 64  # different contents of a chunk, so that no layer can notice that nothing changed


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
        """Ask the kernel to forget the file's pages on this machine; they must be durable already."""
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

    def resident_share(self) -> float | None:
        """Share of the file's pages in this machine's page cache, 0 .. 1; None where that is unknown."""
        return resident_share(self._file)

    def close(self) -> None:
        """Close and remove the file."""
        os.close(self._file)
        with contextlib.suppress(OSError):
            self.path.unlink()


def resident_share(file: int) -> float | None:
    """Share of a file's pages in the page cache by mincore(2); None where the kernel does not say."""
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
            del start  # the mapping cannot be closed while something points into it
    except (OSError, ValueError, AttributeError):
        return None
    return sum(page & 1 for page in seen) / pages if status == 0 else None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An operation that the operating system refused; fields of `evidence.storage.StorageError`."""

    path: str
    operation: str
    errno: str
    message: str
    bytes_wanted: int | None
    bytes_free: int | None

    def evidence(self, phase: str, name: str, group: Group) -> StorageError:
        """The refusal on this rank, of the storage target `name`."""
        return StorageError(phase=phase, name=name, rank=group.rank, node=group.node, **vars(self))


def refusals_of_all(group: Group, own: Sequence[Refusal], phase: str, name: str) -> list[StorageError]:
    """The first refusal of every rank that met one, the same on all ranks."""
    every = group.gather([item.evidence(phase, name, group) for item in own[:1]])
    return [item for items in every for item in items]


def refusal(error: OSError, operation: str, path: Path, wanted: int | None = None) -> Refusal:
    """What an OSError says; free bytes are asked for now, after what was half written is gone."""
    number = error.errno or 0
    return Refusal(
        path=str(path),
        operation=operation,
        errno=errno.errorcode.get(number, type(error).__name__ if number == 0 else str(number)),
        message=os.strerror(number) if number else str(error),
        bytes_wanted=wanted,
        bytes_free=free_bytes(path),
    )


def free_bytes(path: Path) -> int | None:
    """Bytes an ordinary user may still write on the file system of a path, or of its nearest parent."""
    for place in (path, *path.parents):
        with contextlib.suppress(OSError):
            found = os.statvfs(place)
            return found.f_bavail * found.f_frsize
    return None


@contextlib.contextmanager
def refusing(found: list[Refusal], operation: str, path: Path, wanted: int | None = None) -> Iterator[None]:
    """Collect an OSError of the block instead of raising it: the peers must hear of it first."""
    try:
        yield
    except OSError as error:
        found.append(refusal(error, operation, path, wanted))
