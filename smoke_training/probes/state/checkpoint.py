"""Checkpoints that are either complete or refused.

One folder per step and rank: `state.pt`, then `manifest.json` with the SHA-256 of the file and of every
entry; it comes last and proves the shard. When all ranks have theirs, every node writes a commit mark that
lists all manifests. A shard without proof in a step without a mark was never finished, which a kill
explains; the same in a step with a mark was damaged later, which nothing excuses.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from smoke_training.manifest import differences, entry_digest
from smoke_training.runtime.files import write_durably

State = dict[str, Any]

STATE, MANIFEST = "state.pt", "manifest.json"


class TornCheckpointError(RuntimeError):
    """A shard that is incomplete or whose bytes are not those its manifest promises."""


class UnreadableCheckpointError(RuntimeError):
    """A shard that the operating system does not let us read, so that nobody knows whether it is whole."""


@dataclass(frozen=True, kw_only=True)
class Shard:
    """What one rank finds of its part of one step's checkpoint; `fault` is None when it proves complete."""

    step: int
    path: str
    fault: str | None
    readable: bool = True


def manifest(state: State) -> dict[str, str]:
    """SHA-256 of every entry's type, shape and raw bytes."""
    return {name: _digest(value) for name, value in state.items()}


def write(folder: Path, state: State) -> tuple[int, str]:
    """Write a shard durably; returns its bytes and the SHA-256 of its manifest.

    A crash at any moment leaves it complete or refused. OSError (a full disk, say) leaves nothing half done
    and no temporary file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    memory = io.BytesIO()
    torch.save(state, memory)
    raw = memory.getvalue()
    record = {"file_sha256": hashlib.sha256(raw).hexdigest(), "bytes": len(raw), "entries": manifest(state)}
    proof = json.dumps(record).encode()
    known = (folder / MANIFEST).exists()
    try:
        write_durably(folder / STATE, raw)
        write_durably(folder / MANIFEST, proof)
    except OSError:
        _remove_unproven(folder, [] if known else [MANIFEST, STATE])
        raise
    return len(raw), hashlib.sha256(proof).hexdigest()


def leftovers(root: Path) -> list[str]:
    """Temporary files below a folder; there should be none."""
    return sorted(str(path) for path in root.rglob(".*") if path.is_file())


def commit(root: Path, step: int, node: int, manifests: Mapping[int, str]) -> None:
    """Mark a step as complete on all ranks, whose manifests have these digests."""
    record = {"step": step, "manifests": {str(rank): digest for rank, digest in manifests.items()}}
    write_durably(step_folder(root, step) / f"commit-node-{node}.json", json.dumps(record).encode())


def committed(root: Path) -> dict[int, dict[int, str]]:
    """The marks that can be read here: step -> rank -> digest of its manifest. Half a mark is none."""
    found: dict[int, dict[int, str]] = {}
    for path in sorted(root.glob("step-*/commit-node-*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(path.read_bytes())
            found[int(record["step"])] = {int(rank): str(d) for rank, d in record["manifests"].items()}
    return found


def read(folder: Path, promised_sha256: str | None = None) -> State:
    """Read a shard and prove every entry.

    `promised_sha256` is what a commit mark says of the manifest. TornCheckpointError says what is wrong with
    the shard, UnreadableCheckpointError that it cannot be read at all.
    """
    name = f"{folder.parent.name}/{folder.name}"
    proof, raw = _bytes(folder / MANIFEST, name), _bytes(folder / STATE, name)
    try:
        record = json.loads(proof)
        entries: Mapping[str, str] = dict(record["entries"])
        file_sha256 = record["file_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise TornCheckpointError(f"{name}: {MANIFEST} does not make sense ({error})") from error
    if hashlib.sha256(raw).hexdigest() != file_sha256:
        raise TornCheckpointError(f"{name}: {STATE} has {len(raw)} bytes that are not those of its manifest")
    if promised_sha256 is not None and hashlib.sha256(proof).hexdigest() != promised_sha256:
        raise TornCheckpointError(f"{name}: {MANIFEST} is not the one that was committed")
    state: State = torch.load(io.BytesIO(raw), weights_only=True, map_location="cpu")
    wrong = differences(entries, manifest(state))
    if wrong:
        raise TornCheckpointError(f"{name}: entries differ from the manifest: {', '.join(wrong[:5])}")
    return state


def steps(root: Path) -> list[int]:
    """Every step of which there is a folder here, whatever it holds."""
    names = (path.name.removeprefix("step-") for path in root.glob("step-*"))
    return sorted(int(name) for name in names if name.isdigit())


def inspect(root: Path, step: int, rank: int, promised_sha256: str | None = None) -> Shard:
    """One rank's part of one step, read and proven."""
    where = folder(root, step, rank)
    try:
        read(where, promised_sha256)
    except TornCheckpointError as error:
        return Shard(step=step, path=str(where), fault=str(error))
    except UnreadableCheckpointError as error:
        return Shard(step=step, path=str(where), fault=str(error), readable=False)
    return Shard(step=step, path=str(where), fault=None)


def step_folder(root: Path, step: int) -> Path:
    """Where the checkpoint of one step lies."""
    return root / f"step-{step:08d}"


def folder(root: Path, step: int, rank: int) -> Path:
    """Where the shard of one step and rank lies."""
    return step_folder(root, step) / f"rank-{rank}"


def _bytes(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TornCheckpointError(f"{name}: {path.name} is missing") from error
    except OSError as error:
        raise UnreadableCheckpointError(f"{path}: {error.strerror or error}") from error


def _remove_unproven(folder: Path, names: Sequence[str]) -> None:
    """What an aborted write left of a shard: temporary files, and of a new shard the rest."""
    for path in [*folder.glob(f".*.{os.getpid()}"), *(folder / name for name in names)]:
        with contextlib.suppress(OSError):
            path.unlink()
    for empty in (folder, folder.parent):
        with contextlib.suppress(OSError):
            empty.rmdir()


def _truncate(target: Path) -> None:
    os.truncate(target / STATE, (target / STATE).stat().st_size // 2)


def _flip(target: Path) -> None:
    raw = bytearray((target / STATE).read_bytes())
    raw[len(raw) // 2] ^= 1
    (target / STATE).write_bytes(raw)


TEARS: Mapping[str, Callable[[Path], None]] = {
    "half the state file": _truncate,
    "one flipped bit": _flip,
    "no manifest": lambda target: (target / MANIFEST).unlink(),
    "no state file": lambda target: (target / STATE).unlink(),
    "half the manifest": lambda target: os.truncate(target / MANIFEST, 100),
}


def _digest(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu().contiguous()
        raw = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
        return entry_digest(str(value.dtype), tuple(value.shape), raw)
    return entry_digest(type(value).__name__, (), repr(value).encode())
