"""Atomic writes of files, writes into devices and pipes, and folders held against sweeping."""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from pathlib import Path

LEFTOVERS_S = 86400.0  # longer than any run
UNHELD_S = 60.0  # more than the time between creating and holding a folder


def lines(path: Path) -> list[str]:
    """Return the lines of a text file; none if it is unreadable."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def hold(folder: Path) -> int:
    """Lock a folder against sweeping while this process lives; the kernel releases the lock.

    Return the descriptor of the lock, for `os.close`.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def sweep(folder: Path, prefix: str, *, held: bool = False) -> None:
    """Remove folders of killed runs: those a day old, or, with `held`, those not locked, however old.

    Locks are visible on one machine only, so folders on shared storage are judged by their age, by the clock
    of the storage: that of this machine may differ.
    """
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as new:
        now = os.fstat(new.fileno()).st_mtime
        for left in folder.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):
                age = now - left.stat().st_mtime
                if age > UNHELD_S and not _held(left) if held else age > LEFTOVERS_S:
                    shutil.rmtree(left, ignore_errors=True)


def _held(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def write_durably(path: Path, content: bytes) -> None:
    """Write under a temporary name, fsync, rename, fsync the folder: readers never see a part.

    A link is followed. What is no regular file (a device, a FIFO, a pipe) is written into, and waits for its
    reader.
    """
    if not replaceable(path):
        with path.open("ab") as stream:
            stream.write(content)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def replaceable(path: Path) -> bool:
    """Report whether a path is a regular file, or none yet: no device, pipe or open descriptor."""
    descriptor = str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/"))
    return not descriptor and (path.is_file() or not path.exists())


def remove(path: Path) -> None:
    """Remove the regular file that a path leads to, and no link."""
    Path(os.path.realpath(path)).unlink(missing_ok=True)


def write_json(path: Path, document: object) -> None:
    """Write an indented JSON document durably."""
    write_durably(path, (json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
