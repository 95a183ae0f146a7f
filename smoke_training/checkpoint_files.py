"""Folders of checkpoints, one per step, and the commit marks in them."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

Digests = Mapping[str, str]
"""SHA-256 of files, or of the entries of a state, by name."""


def step_folder(root: Path, step: int) -> Path:
    """Return the folder of one step's checkpoint."""
    return root / f"step-{step:08d}"


def steps(root: Path) -> list[int]:
    """Return every step with a folder here, whatever its content."""
    names = (path.name.removeprefix("step-") for path in root.glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())


def mark_name(node: int | str) -> str:
    """Return the file name of a node's commit mark."""
    return f"commit-node-{node}.json"


def mark_in(folder: Path) -> Digests | None:
    """Return the digests of a folder's commit mark; None without a readable one. Half a mark is none."""
    for path in sorted(folder.glob(mark_name("*"))):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return dict(json.loads(path.read_bytes())["files"])
    return None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
