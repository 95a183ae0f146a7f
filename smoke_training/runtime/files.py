"""Files that are whole or absent, read or written."""

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

LEFTOVERS_S = 86400.0  # no run lasts a day


def lines(path: Path) -> list[str]:
    """Lines of a text file; none if it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def sweep(folder: Path, prefix: str) -> None:
    """Remove what runs that were killed outright left here a day ago."""
    for left in folder.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFTOVERS_S:
                shutil.rmtree(left, ignore_errors=True)


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
