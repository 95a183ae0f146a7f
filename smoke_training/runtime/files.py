"""Files that are whole or absent, read or written."""

import json
import os
from pathlib import Path


def lines(path: Path) -> list[str]:
    """Lines of a text file; none if it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


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
