"""Asynchronous checkpoints of a sharded state by torch.distributed.checkpoint, restored and compared.

What stalls training is the staging; the checkpoint counts only when `.result()` has returned, which is also
the only place where a failed upload shows. Then comes our own mark: DCP's metadata says where bytes should
lie, not which bytes, so a flipped bit would be restored in silence. The mark lists the SHA-256 of every
file, and nothing is restored that does not fit it.

The CUDA path (state on the device, checkpoints coordinated through a gloo group beside nccl) is untested on
hardware.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from smoke_training.manifest import differences
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.state import checkpoint
from smoke_training.probes.state.checkpoint import TornCheckpointError
from smoke_training.probes.storage.disk import Refusal, refusal, resident_share
from smoke_training.probes.storage.throughput import CHECKPOINTS, PREFIX, checkpoint_folder
from smoke_training.runtime import heartbeat
from smoke_training.runtime.files import write_durably

MIB = 1 << 20
TENSORS, WIDTH = 4, 1024
METADATA = ".metadata"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Bytes of one rank's shards, and how many checkpoints are timed after one that is not."""

    bytes_per_rank: int
    checkpoints: int


def amount(gang: Gang, full: bool) -> Amount:
    """How much to write: enough to see the rate, little enough for the budget."""
    if gang.cuda:
        return Amount(bytes_per_rank=(1024 if full else 256) * MIB, checkpoints=3)
    return Amount(bytes_per_rank=(32 if full else 8) * MIB, checkpoints=5 if full else 3)


def measure(context: Context) -> Iterator[Line]:
    """The `checkpoint` evidence, or `storage_error` lines where storage refused."""
    gang, root = context.gang, checkpoint_folder(context) / "dcp"
    try:
        yield from Trial(context, root).run()
    finally:
        with contextlib.suppress(RuntimeError):  # a peer may be gone
            gang.barrier()
        if gang.local_rank == 0:
            shutil.rmtree(root.parent if root.parent.name.startswith(PREFIX) else root, ignore_errors=True)


class Trial:
    """Save, restore and compare on this rank."""

    def __init__(self, context: Context, root: Path) -> None:
        from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 - half a second of imports

        self.gang, self.root, self.seed = context.gang, root, context.plan.seed
        self.amount = amount(context.gang, context.full)
        self.group = dist.new_group(backend="gloo")  # DCP needs a CPU backend, also beside nccl
        self.mesh = init_device_mesh(self.gang.device.type, (self.gang.world,))
        self.heart = heartbeat.own()

    def run(self) -> Iterator[Line]:
        """One checkpoint that warms up, the timed ones, the restore."""
        state = self._state(fill=True)
        stall, commit, mark = list[float](), list[float](), list[float]()
        for number in range(self.amount.checkpoints + 1):
            self.heart.beat()
            self.gang.barrier()
            seconds, refused = self._save(state, number)
            if refused:
                yield from refused
                return
            if number:
                for column, value in zip((stall, commit, mark), seconds, strict=True):
                    column.append(value)
            self._remove(number - 2)
        last = self._folder(self.amount.checkpoints)
        resident = self._forget(last)
        restore_s, different, entries = self._restore(last, state)
        offered, accepted = self._torn(last)
        own = sum(path.stat().st_size for path in self._files(last))
        found = [
            item for item in self.gang.gather((own, entries, different, resident)) if isinstance(item, tuple)
        ]
        tears = self.gang.gather((offered, accepted))
        shares = [item[3] for item in found]
        yield {
            "kind": "checkpoint",
            "name": CHECKPOINTS,
            "path": str(self.root),
            "ranks": self.gang.world,
            "bytes": sum(item[0] for item in found),
            "stall_s": self.gang.maxima(stall),
            "commit_s": self.gang.maxima(commit),
            "mark_s": self.gang.maxima(mark),
            "restore_s": self.gang.maxima([restore_s])[0],
            "restore_resident_share": None if None in shares else max(shares),
            "entries": sum(item[1] for item in found),
            "different": [f"rank {rank}: {name}" for rank, item in enumerate(found) for name in item[2]][:20],
            "torn_offered": [f"rank {r}: {n}" for r, t in enumerate(tears) for n in _pair(t)[0]],
            "torn_accepted": [f"rank {r}: {n}" for r, t in enumerate(tears) for n in _pair(t)[1]],
            "left_behind": [path for path in checkpoint.leftovers(last) if not path.endswith(METADATA)],
        }

    def _state(self, fill: bool) -> dict[str, Any]:
        """Tensors sharded over all ranks by rows, random or zero."""
        from torch.distributed.tensor import DTensor, Shard  # noqa: PLC0415

        dice = torch.Generator(device="cpu").manual_seed(self.seed + self.gang.rank)
        rows = self.amount.bytes_per_rank // (TENSORS * WIDTH * 4)
        state: dict[str, Any] = {}
        for index in range(TENSORS):
            local = torch.randn(rows, WIDTH, generator=dice) if fill else torch.zeros(rows, WIDTH)
            state[f"layer-{index}"] = DTensor.from_local(
                local.to(self.gang.device), self.mesh, [Shard(0)], run_check=False
            )
        return state

    def _save(self, state: dict[str, Any], number: int) -> tuple[tuple[float, float, float], list[Line]]:
        """One checkpoint: seconds until staged, until `.result()`, and for the mark; what storage refused."""
        from torch.distributed.checkpoint.api import CheckpointException  # noqa: PLC0415
        from torch.distributed.checkpoint.filesystem import FileSystemWriter  # noqa: PLC0415
        from torch.distributed.checkpoint.state_dict_saver import async_save  # noqa: PLC0415

        folder, refusals, began = self._folder(number), list[Refusal](), time.perf_counter()
        stalled = done = began
        try:
            folder.mkdir(parents=True, exist_ok=True)
            writer = FileSystemWriter(folder, sync_files=True)
            future = async_save(state, storage_writer=writer, process_group=self.group)
            stalled = time.perf_counter()
            future.result()  # type: ignore[union-attr]  # a Future, because the default stager is synchronous
            done = time.perf_counter()
        except (CheckpointException, OSError, RuntimeError) as error:
            refusals += _refusals(error, self.gang.rank, folder, self.amount.bytes_per_rank)
        refused = self._agree(number, refusals)
        if not refused:
            refused = self._agree(number, self._mark(folder))
        return (stalled - began, done - began, time.perf_counter() - done), refused

    def _mark(self, folder: Path) -> list[Refusal]:
        """Share the metadata with nodes that do not see it, then write this node's commit mark."""
        digests = {path.name: sha256(path) for path in self._files(folder)}
        metadata = (folder / METADATA).read_bytes() if self.gang.rank == 0 else b""
        told = [item for item in self.gang.gather((digests, metadata)) if isinstance(item, tuple)]
        if self.gang.local_rank != 0:
            return []
        metadata = told[0][1]
        files = {name: digest for theirs, _ in told for name, digest in theirs.items()}
        files[METADATA] = hashlib.sha256(metadata).hexdigest()
        try:
            if not (folder / METADATA).exists():
                write_durably(folder / METADATA, metadata)
            write_mark(folder, self.gang.node, files)
        except OSError as error:
            return [refusal(error, "write", folder)]
        return []

    def _agree(self, number: int, refusals: list[Refusal]) -> list[Line]:
        """What storage refused on any rank; the failed checkpoint is then gone from every rank."""
        if any(self.gang.gather(bool(refusals))):
            self._remove(number)
            self.gang.barrier()
        lines: list[Line] = []
        for item in refusals[:1]:
            left = checkpoint.leftovers(self._folder(number)) if self._folder(number).exists() else []
            line = item.line("checkpoint", CHECKPOINTS, self.gang.rank, self.gang.node)
            lines.append({**line, "left_behind": left, "previous_complete": self._complete(number - 1)})
        return [line for theirs in self.gang.gather(lines) if isinstance(theirs, list) for line in theirs]

    def _complete(self, number: int) -> bool | None:
        if number < 0:
            return None
        try:
            verify(self._folder(number), self.gang.rank, self.gang.node)
        except TornCheckpointError:
            return False
        return True

    def _restore(self, folder: Path, saved: dict[str, Any]) -> tuple[float, list[str], int]:
        """Verify, load into zeros; seconds, names that are not bit-equal, number of entries."""
        from torch.distributed.checkpoint.filesystem import FileSystemReader  # noqa: PLC0415
        from torch.distributed.checkpoint.state_dict_loader import load  # noqa: PLC0415

        fresh = self._state(fill=False)
        self.gang.barrier()
        began = time.perf_counter()
        verify(folder, self.gang.rank, self.gang.node)
        load(fresh, storage_reader=FileSystemReader(folder), process_group=self.group)
        self.gang.sync()
        seconds = time.perf_counter() - began
        wanted, found = (
            checkpoint.manifest({name: value.to_local() for name, value in state.items()})
            for state in (saved, fresh)
        )
        return seconds, differences(wanted, found), len(wanted)

    def _forget(self, folder: Path) -> float | None:
        """Drop this rank's files from the page cache; the share that stayed."""
        shares = []
        for path in self._files(folder):
            file = os.open(path, os.O_RDWR)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            shares.append(resident_share(file))
            os.close(file)
        known = [share for share in shares if share is not None]
        return max(known) if known and len(known) == len(shares) else None

    def _torn(self, folder: Path) -> tuple[list[str], list[str]]:
        """Damage copies of this rank's files in every known way; which were offered, and not refused."""
        accepted = []
        for number, (name, damage) in enumerate(TEARS.items()):
            copy = self.root / f"torn-{number}-{self.gang.rank}"
            copy.mkdir()
            for path in [*self._files(folder), folder / METADATA, folder / mark_name(self.gang.node)]:
                shutil.copyfile(path, copy / path.name)
            damage(copy, self.gang.rank, self.gang.node)
            if is_complete(copy, self.gang.rank, self.gang.node):
                accepted.append(name)
            shutil.rmtree(copy)
        return list(TEARS), accepted

    def _files(self, folder: Path) -> list[Path]:
        return shards(folder, self.gang.rank)

    def _folder(self, number: int) -> Path:
        return self.root / f"checkpoint-{number}"

    def _remove(self, number: int) -> None:
        """Remove this rank's files of an older or a failed checkpoint, and the folder if nothing is left."""
        folder = self._folder(number)
        for path in self._files(folder):
            path.unlink(missing_ok=True)
        if self.gang.local_rank == 0:
            for path in [*folder.glob(".*"), *folder.glob("commit-node-*")]:
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()


def shards(folder: Path, rank: int) -> list[Path]:
    """The files of one rank, as `FileSystemWriter` names them."""
    return sorted(folder.glob(f"__{rank}_*.distcp"))


def mark_name(node: int) -> str:
    """File name of a node's commit mark."""
    return f"commit-node-{node}.json"


def write_mark(folder: Path, node: int, files: Mapping[str, str]) -> None:
    """Commit: write down durably which bytes all files of the checkpoint have, by name."""
    write_durably(folder / mark_name(node), json.dumps({"files": dict(files)}).encode())


def verify(folder: Path, rank: int, node: int) -> None:
    """Prove that one rank's files and the metadata are those of the node's mark; else TornCheckpointError."""
    try:
        files: Mapping[str, str] = dict(json.loads((folder / mark_name(node)).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TornCheckpointError(f"{folder.name}: no commit mark of node {node} ({error})") from error
    wanted = [name for name in files if name.startswith(f"__{rank}_")]
    if not wanted:
        raise TornCheckpointError(f"{folder.name}: the mark lists no file of rank {rank}")
    for name in [*wanted, METADATA]:
        try:
            digest = sha256(folder / name)
        except OSError as error:
            raise TornCheckpointError(f"{folder.name}: {name} cannot be read ({error.strerror})") from error
        if digest != files.get(name):
            raise TornCheckpointError(f"{folder.name}: {name} has other bytes than were committed")


def is_complete(folder: Path, rank: int, node: int) -> bool:
    """Whether one rank's part of a checkpoint may be restored."""
    try:
        verify(folder, rank, node)
    except TornCheckpointError:
        return False
    return True


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _refusals(error: BaseException, rank: int, folder: Path, wanted: int) -> list[Refusal]:
    """What the operating system refused this rank; torch's writer may turn a full disk into RuntimeError."""
    failures = getattr(error, "failures", None)
    own = failures.get(rank, (None,))[0] if failures is not None else error
    if own is None:
        return []
    cause: BaseException | None = own
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    found = refusal(cause if isinstance(cause, OSError) else OSError(str(own)), "write", folder, wanted)
    if found.errno == "OSError" and found.bytes_free is not None and found.bytes_free < wanted:
        return [refusal(OSError(errno.ENOSPC, ""), "write", folder, wanted)]
    return [found]


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


TEARS: Mapping[str, Callable[[Path, int, int], None]] = {
    "half a file": lambda folder, rank, _node: os.truncate(
        shards(folder, rank)[0], shards(folder, rank)[0].stat().st_size // 2
    ),
    "one flipped bit": lambda folder, rank, _node: _flip(shards(folder, rank)[0]),
    "no file": lambda folder, rank, _node: shards(folder, rank)[0].unlink(),
    "no mark": lambda folder, _rank, node: (folder / mark_name(node)).unlink(),
    "half a mark": lambda folder, _rank, node: os.truncate(folder / mark_name(node), 40),
    "no metadata": lambda folder, _rank, _node: (folder / METADATA).unlink(),
    "one flipped bit in the metadata": lambda folder, _rank, _node: _flip(folder / METADATA),
}


def _pair(item: object) -> tuple[list[str], list[str]]:
    assert isinstance(item, tuple)
    return item[0], item[1]
