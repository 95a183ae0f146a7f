"""Checkpoints of any training loop: committed by a mark, pruned by a policy except the newest complete one.

One folder per step holds whatever the loop wrote. The commit mark, written last, names every file with its
size and SHA-256, in the form of `smoke_training.checkpoint_files`. A folder without a readable mark, or
without one of its files, is no checkpoint: it is not counted and not deleted.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from smoke_training.checkpoint_files import mark_in, mark_name, sha256, step_folder, steps
from smoke_training.files import write_durably
from smoke_training.instrumentation.retention import Retention

_GONE = ".removed-"
_MARK = mark_name(0)
_READERS = 4  # hashing releases the GIL, and file systems serve several readers faster than one


def begin(root: Path, step: int) -> Path:
    """Prepare the folder of a step and remove its mark, if an earlier attempt left one."""
    folder = step_folder(root, step)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).unlink(missing_ok=True)
    return folder


def commit(root: Path, step: int, clock: Callable[[], float] = time.time) -> float:
    """Read back the folder of a step and mark it as complete; return the time (seconds since 1970).

    FileNotFoundError where nothing was written.
    """
    folder = step_folder(root, step)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / _MARK)
    if not files:
        raise FileNotFoundError(f"{folder}: nothing was written there")
    with ThreadPoolExecutor(_READERS) as readers:
        digests = list(readers.map(sha256, files))
    for path in files:
        _sync(path)
    names = [path.relative_to(folder).as_posix() for path in files]
    sizes = [path.stat().st_size for path in files]
    at = clock()
    mark = {
        "files": dict(zip(names, digests, strict=True)),
        "bytes": dict(zip(names, sizes, strict=True)),
        "at": at,
    }
    write_durably(folder / _MARK, json.dumps(mark).encode())
    return at


def whole(root: Path) -> dict[int, float]:
    """Return the complete checkpoints below a folder: by step, the time of completion.

    Sizes are compared, not contents: `damaged` does that.
    """
    found = {}
    for step in steps(root):
        folder = step_folder(root, step)
        promised = mark_in(folder)
        if promised and all(
            (folder / name).is_file() and size in (None, (folder / name).stat().st_size)
            for name, size in _sizes(folder, promised).items()
        ):
            at = _mark_fields(folder).get("at")
            found[step] = float(at) if isinstance(at, int | float) else folder.stat().st_mtime
    return found


def damaged(root: Path, step: int) -> list[str]:
    """Return the files of a checkpoint that do not match its mark; empty when it can be restored.

    A checkpoint without a mark is damaged entirely.
    """
    folder = step_folder(root, step)
    promised = mark_in(folder)
    if not promised:
        return [_MARK]
    return [
        name
        for name, digest in promised.items()
        if not (folder / name).is_file() or sha256(folder / name) != digest
    ]


def prune(root: Path, retention: Retention) -> list[int]:
    """Delete the checkpoints that the policy does not keep, the oldest first; return their steps.

    The newest complete one always stays. One that cannot be deleted stays, too; its OSError is raised after
    the others are deleted.
    """
    for gone in root.glob(f"{_GONE}*"):
        shutil.rmtree(gone, ignore_errors=True)
    there = whole(root)
    given_up = sorted(there.keys() - retention.kept(there))
    refused: OSError | None = None
    for step in given_up:
        try:
            # Under another name it is no checkpoint, even if the deletion is interrupted.
            gone = root / f"{_GONE}{step_folder(root, step).name}"
            step_folder(root, step).rename(gone)
            shutil.rmtree(gone)
        except OSError as error:
            refused = error
    if refused is not None:
        raise refused
    return given_up


def _sizes(folder: Path, promised: Mapping[str, str]) -> dict[str, int | None]:
    message = _mark_fields(folder).get("bytes")
    known = message if isinstance(message, dict) else {}
    return {name: known.get(name) for name in promised}


def _mark_fields(folder: Path) -> Mapping[str, object]:
    """Return the fields of a mark besides the digests; empty for marks without any."""
    try:
        found = json.loads((folder / _MARK).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
