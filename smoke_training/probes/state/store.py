"""Checkpoints by torch.distributed.checkpoint (DCP) that are either complete or refused.

One folder per step holds DCP's files of every rank and its metadata; then every node writes a commit mark
with the SHA-256 of all of them, which DCP's metadata lacks. A step without a mark was interrupted by the
kill; a step whose bytes do not match its mark was damaged later, which is a fault.

A checkpoint counts only when `.result()` has returned, which is also the only place where a failed upload
shows. On CUDA the state is on the device, and a gloo group beside nccl coordinates.
"""

import ctypes
import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from smoke_training.checkpoint_files import Digests, mark_in, mark_name, sha256, step_folder, steps
from smoke_training.evidence.storage import StorageError
from smoke_training.files import write_durably
from smoke_training.probes.group import Group
from smoke_training.probes.storage.disk import Refusals, free_bytes
from smoke_training.probes.storage.throughput import CHECKPOINTS

State = dict[str, Any]

METADATA = ".metadata"


class TornCheckpointError(RuntimeError):
    """A part of a checkpoint that is not complete, with the reason from `inspect`."""


class CheckpointWriteError(RuntimeError):
    """Storage refused a checkpoint on some rank; every rank raises this at the same step."""

    def __init__(self, refused: list[StorageError]) -> None:
        super().__init__(f"{len(refused)} ranks could not write their checkpoint")
        self.refused = refused


@dataclass(frozen=True, kw_only=True)
class Part:
    """One rank's finding about its part of one step; `fault` is None when complete."""

    rank: int
    node: int
    step: int
    path: str
    fault: str | None
    readable: bool = True


class CheckpointStore:
    """The checkpoints below one folder. Its methods exchange with all ranks unless documented otherwise.

    The folder may be shared by all nodes or be each node's own.
    """

    def __init__(self, group: Group, root: Path, phase: str) -> None:
        self.group, self.root, self.phase = group, root, phase
        self._gloo = dist.new_group(backend="gloo")  # DCP needs a CPU backend, also beside nccl

    def save(self, state: State, step: int) -> tuple[float, float, float]:
        """Write one checkpoint durably; RefusedError leaves nothing of it on any rank.

        Return seconds on this rank until the state was staged and training continued, until `.result()`, and
        from then until the commit mark was durable.
        """
        from torch.distributed.checkpoint.api import CheckpointException  # noqa: PLC0415 - half a second
        from torch.distributed.checkpoint.filesystem import FileSystemWriter  # noqa: PLC0415
        from torch.distributed.checkpoint.state_dict_saver import async_save  # noqa: PLC0415

        folder, refusals = step_folder(self.root, step), self._refusals()
        staged = done = began = time.perf_counter()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            writer = FileSystemWriter(folder, sync_files=True)
            future = async_save(state, storage_writer=writer, process_group=self._gloo)
            staged = time.perf_counter()
            future.result()  # type: ignore[union-attr]  # a Future, because the default stager is synchronous
            done = time.perf_counter()
        except (CheckpointException, OSError, RuntimeError) as error:
            wanted = sum(value.nbytes for value in state.values() if isinstance(value, torch.Tensor))
            refused = _refused(error, self.group.rank, folder, wanted)
            if refused is not None:
                refusals.add(refused, "write", folder, wanted)
        self._agree(step, refusals)
        self._mark(folder, refusals)
        self._agree(step, refusals)
        return staged - began, done - began, time.perf_counter() - done

    def restore(self, step: int, state: State) -> None:
        """Prove this rank's part of a step (else TornCheckpointError) and load it into `state`."""
        from torch.distributed.checkpoint.filesystem import FileSystemReader  # noqa: PLC0415
        from torch.distributed.checkpoint.state_dict_loader import load  # noqa: PLC0415

        fault = inspect(self.root, step, self.group).fault
        if fault is not None:
            raise TornCheckpointError(fault)
        reader = FileSystemReader(step_folder(self.root, step))
        load(state, storage_reader=reader, process_group=self._gloo)
        self.group.sync()

    def torn(self, step: int, room: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Damage copies of this rank's files in every known way; return the ways, and the accepted ones.

        RefusedError, on every rank, if storage refused a copy on some rank.
        """
        folder, rank, accepted = step_folder(self.root, step), self.group.rank, list[str]()
        mark, refusals = mark_name(self.group.node), self._refusals()
        for number, (name, damage) in enumerate(TEARS.items()):
            self.group.beat()
            root = room / f"torn-{number}-{rank}"
            copy = step_folder(root, step)
            with refusals.collected("write", copy):
                copy.mkdir(parents=True)
                for path in [*shards(folder, rank), folder / METADATA, folder / mark]:
                    shutil.copyfile(path, copy / path.name)
                damage(copy, shards(copy, rank)[0], copy / mark)
                if inspect(root, step, self.group).fault is None:
                    accepted.append(name)
            shutil.rmtree(root, ignore_errors=True)
        self._agree(step, refusals)
        return tuple(TEARS), tuple(accepted)

    def remove(self, step: int) -> None:
        """Remove a step that no rank needs. No exchange."""
        if self.group.local_rank == 0:
            shutil.rmtree(step_folder(self.root, step), ignore_errors=True)

    def _refusals(self) -> Refusals:
        return Refusals(self.group, self.phase, CHECKPOINTS)

    def _mark(self, folder: Path, refusals: Refusals) -> None:
        """Copy the metadata to nodes without it, then write this node's commit mark."""
        digests = {path.name: sha256(path) for path in shards(folder, self.group.rank)}
        every = self.group.gather(
            (digests, (folder / METADATA).read_bytes() if self.group.rank == 0 else b"")
        )
        if self.group.local_rank != 0:
            return
        metadata = every[0][1]
        files = {name: digest for theirs, _ in every for name, digest in theirs.items()}
        files[METADATA] = hashlib.sha256(metadata).hexdigest()
        with refusals.collected("write", folder):
            if not (folder / METADATA).exists():
                write_durably(folder / METADATA, metadata)
            write_durably(folder / mark_name(self.group.node), json.dumps({"files": files}).encode())

    def _agree(self, step: int, refusals: Refusals) -> None:
        """Raise RefusedError on every rank if storage refused any; the checkpoint is then removed."""
        if not any(self.group.gather(bool(refusals.own))):
            return
        self.remove(step)
        self.group.barrier()
        left = tuple(leftovers(step_folder(self.root, step)))
        older = [other for other in steps(self.root) if other < step]
        whole = inspect(self.root, older[-1], self.group).fault is None if older else None
        refusals.own = [replace(item, left_behind=left, previous_complete=whole) for item in refusals.own]
        raise CheckpointWriteError(refusals.of_all())


def inspect(root: Path, step: int, group: Group, promised: Digests | None = None) -> Part:
    """Prove that this rank's files of a step and the metadata are those of a commit mark.

    They are compared with `promised`, else with a mark in their own folder. A part that the operating system
    refuses to read may be complete: it is not `readable`.
    """
    folder, readable = step_folder(root, step), True
    try:
        fault = _fault(folder, group.rank, mark_in(folder) if promised is None else promised)
    except OSError as error:
        fault, readable = f"{error.filename or folder}: {error.strerror or error}", False
    return Part(rank=group.rank, node=group.node, step=step, path=str(folder), fault=fault, readable=readable)


def own_state(folder: Path) -> State:
    """Allocate every entry of a checkpoint, by its metadata; `CheckpointStore.restore` fills it."""
    from torch.distributed.checkpoint.filesystem import FileSystemReader  # noqa: PLC0415
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata  # noqa: PLC0415

    known = FileSystemReader(folder).read_metadata().state_dict_metadata
    return {
        name: torch.empty(item.size, dtype=item.properties.dtype)
        if isinstance(item, TensorStorageMetadata)
        else ""
        for name, item in known.items()
    }


def manifest(state: State) -> dict[str, str]:
    """Return the SHA-256 of every entry's type, shape and raw bytes; of a DTensor's, this rank's shard."""
    return {name: _digest(value) for name, value in state.items()}


def differences(expected: Digests, found: Digests) -> list[str]:
    """Return names whose digests differ or that only one side has; empty means entirely equal."""
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def shards(folder: Path, rank: int) -> list[Path]:
    """Return the files of one rank, as `FileSystemWriter` names them."""
    return sorted(folder.glob(f"__{rank}_*.distcp"))


def leftovers(root: Path) -> list[str]:
    """Return temporary files below a folder; none are expected."""
    return sorted(str(path) for path in root.rglob(".*") if path.is_file() and path.name != METADATA)


def _fault(folder: Path, rank: int, promised: Digests | None) -> str | None:
    """Return the fault of one rank's files or the metadata; None if they match the mark."""
    if promised is None:
        return f"{folder.name}: no commit mark"
    wanted = [name for name in promised if name.startswith(f"__{rank}_")]
    if not wanted:
        return f"{folder.name}: the mark lists no file of rank {rank}"
    for name in [*wanted, METADATA]:
        try:
            digest = sha256(folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return f"{folder.name}: {name} is missing"
        if digest != promised.get(name):
            return f"{folder.name}: {name} differs from the committed bytes"
    return None


def _refused(error: BaseException, rank: int, folder: Path, wanted: int) -> OSError | None:
    """Return the OSError of this rank; torch's writer may turn a full disk into RuntimeError."""
    failures = getattr(error, "failures", None)
    own: BaseException | None = failures.get(rank, (None,))[0] if failures is not None else error
    cause = own
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if own is None or (cause is not None and cause.errno):
        return cause
    free = free_bytes(folder)
    return OSError(errno.ENOSPC, "") if free is not None and free < wanted else OSError(str(own))


def _digest(value: Any) -> str:
    """Return the SHA-256 of type, shape and raw bytes, so that equal bytes of another shape differ."""
    value = value.to_local() if hasattr(value, "to_local") else value
    if isinstance(value, torch.Tensor):
        held = value.detach().cpu().contiguous()
        raw = ctypes.string_at(held.data_ptr(), held.nbytes)  # `.numpy()` would need numpy
        kind, shape = str(value.dtype), tuple(value.shape)
    else:
        raw, kind, shape = repr(value).encode(), type(value).__name__, ()
    return hashlib.sha256(f"{kind}|{','.join(map(str, shape))}|".encode() + raw).hexdigest()


def _halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


TEARS: Mapping[str, Callable[[Path, Path, Path], None]] = {  # of a folder, a rank's file and the mark in it
    "half a file": lambda _folder, shard, _mark: _halve(shard),
    "one flipped bit": lambda _folder, shard, _mark: _flip(shard),
    "no file": lambda _folder, shard, _mark: shard.unlink(),
    "no mark": lambda _folder, _shard, mark: mark.unlink(),
    "half a mark": lambda _folder, _shard, mark: _halve(mark),
    "no metadata": lambda folder, _shard, _mark: (folder / METADATA).unlink(),
    "one flipped bit in the metadata": lambda folder, _shard, _mark: _flip(folder / METADATA),
}
