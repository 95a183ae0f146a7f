"""Files that are whole or absent, read or written."""

import contextlib
import fcntl
import json
import os
import shutil
import time
from pathlib import Path

LEFTOVERS_S = 86400.0  # no run lasts a day
UNHELD_S = 60.0  # more than lies between making a folder and holding it


def lines(path: Path) -> list[str]:
    """Lines of a text file; none if it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def hold(folder: Path) -> int:
    """Keep a folder from being swept while this process lives; the kernel lets go of it, also after a kill.

    The descriptor that holds it, for `os.close`.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def sweep(folder: Path, prefix: str, *, held: bool = False) -> None:
    """Remove what runs that were killed outright left here: a day old, or, where runs hold theirs, not held.

    Only one machine sees who holds a folder, so those on storage are known by their age.
    """
    for left in folder.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            age = time.time() - left.stat().st_mtime
            if age > LEFTOVERS_S or (held and age > UNHELD_S and not _held(left)):
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
    """Write under a temporary name, fsync, rename, fsync the folder: readers never see a part."""
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


def write_json(path: Path, document: object) -> None:
    """Write a JSON document durably, readable by people."""
    write_durably(path, (json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
