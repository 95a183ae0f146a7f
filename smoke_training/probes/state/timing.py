"""What asynchronous checkpoints of a sharded state cost, and whether they come back bit for bit."""

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from smoke_training.evidence import Record
from smoke_training.evidence.state import Checkpoint
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.store import RefusedError, State, Store
from smoke_training.probes.storage.disk import resident_share
from smoke_training.probes.storage.throughput import CHECKPOINTS, PREFIX, checkpoint_folder

MIB = 1 << 20
TENSORS, WIDTH = 4, 1024
MOST_LISTED = 20  # entries that differ


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Bytes of one rank's shards, and how many checkpoints are timed after one that is not."""

    bytes_per_rank: int
    checkpoints: int


def amount(group: Group, full: bool) -> Amount:
    """How much to write: enough to see the rate, little enough for the budget."""
    if group.cuda:
        return Amount(bytes_per_rank=(1024 if full else 256) * MIB, checkpoints=3)
    return Amount(bytes_per_rank=(32 if full else 8) * MIB, checkpoints=5 if full else 3)


def measure(context: Context) -> Iterator[Record]:
    """The `checkpoint` evidence, or `storage_error` lines where storage refused."""
    group, root = context.group, checkpoint_folder(context) / "timed"
    try:
        yield _measured(context, Store(group, root, "checkpoint"))
    except RefusedError as error:
        yield from error.refused
    finally:
        with contextlib.suppress(RuntimeError):  # a peer may be gone
            group.barrier()
        if group.local_rank == 0:
            shutil.rmtree(root.parent if root.parent.name.startswith(PREFIX) else root, ignore_errors=True)


def _measured(context: Context, kept: Store) -> Checkpoint:
    """One checkpoint that warms up, the timed ones, the restore."""
    group, root, chosen = context.group, kept.root, amount(context.group, context.full)
    state = _state(context, chosen, fill=True)
    last, timed = chosen.checkpoints, list[store.Seconds]()
    for number in range(last + 1):
        group.beat()
        group.barrier()
        timed.append(kept.save(state, number))
        kept.remove(number - 2)
    folder = store.step_folder(root, last)
    own = store.shards(folder, group.rank)
    resident = _forget(own)
    fresh = _state(context, chosen, fill=False)
    group.barrier()
    began = time.perf_counter()
    kept.restore(last, fresh)
    restore_s = time.perf_counter() - began
    saved, found = (store.manifest({n: v.to_local() for n, v in s.items()}) for s in (state, fresh))
    different = store.differences(saved, found)
    offered, accepted = kept.torn(last, root)
    ranks = group.gather(
        (sum(path.stat().st_size for path in own), len(saved), different, resident, offered, accepted)
    )
    sizes, entries, differing, shares, every_offered, every_accepted = zip(*ranks, strict=True)
    known = [share for share in shares if share is not None]
    return Checkpoint(
        name=CHECKPOINTS,
        path=str(root),
        ranks=group.world,
        bytes=sum(sizes),
        stall_s=group.maxima([seconds.stall for seconds in timed[1:]]),
        commit_s=group.maxima([seconds.commit for seconds in timed[1:]]),
        mark_s=group.maxima([seconds.mark for seconds in timed[1:]]),
        restore_s=group.maxima([restore_s])[0],
        restore_resident_share=max(known) if len(known) == len(shares) else None,
        entries=sum(entries),
        different=_by_rank(differing)[:MOST_LISTED],
        torn_offered=_by_rank(every_offered),
        torn_accepted=_by_rank(every_accepted),
        left_behind=tuple(store.leftovers(folder)),
    )


def _by_rank(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"rank {rank}: {name}" for rank, theirs in enumerate(names) for name in theirs)


def _state(context: Context, chosen: Amount, *, fill: bool) -> State:
    """Tensors sharded over all ranks by rows, random or zero."""
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 - half a second of imports
    from torch.distributed.tensor import DTensor, Shard  # noqa: PLC0415

    group = context.group
    mesh = init_device_mesh(group.device.type, (group.world,))
    dice = torch.Generator(device="cpu").manual_seed(context.plan.seed + group.rank)
    rows = chosen.bytes_per_rank // (TENSORS * WIDTH * 4)
    state: State = {}
    for index in range(TENSORS):
        local = torch.randn(rows, WIDTH, generator=dice) if fill else torch.zeros(rows, WIDTH)
        state[f"layer-{index}"] = DTensor.from_local(
            local.to(group.device), mesh, [Shard(0)], run_check=False
        )
    return state


def _forget(files: list[Path]) -> float | None:
    """Drop files from the page cache; the largest share that stayed, None where that is unknown."""
    shares = []
    for path in files:
        file = os.open(path, os.O_RDWR)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        shares.append(resident_share(file))
        os.close(file)
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None
