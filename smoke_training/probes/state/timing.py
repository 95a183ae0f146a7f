"""What asynchronous checkpoints of a sharded state cost, and whether they come back bit for bit."""

from collections.abc import Iterator, Sequence

import torch

from smoke_training.evidence import Record
from smoke_training.evidence.state import Checkpoint
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.store import RefusedError, State, Store
from smoke_training.probes.stopwatch import complete
from smoke_training.probes.storage.disk import forgotten
from smoke_training.probes.storage.throughput import CHECKPOINTS, checkpoint_folder, remove_checkpoints

MIB = 1 << 20
TENSORS, WIDTH = 4, 1024
MOST_LISTED = 20  # entries that differ


def amount(group: Group, full: bool) -> tuple[int, int]:
    """Bytes of one rank's shards, and how many checkpoints are timed after one that is not.

    Enough to see the rate, little enough for the budget.
    """
    if group.cuda:
        return (1024 if full else 256) * MIB, 3
    return (32 * MIB, 5) if full else (8 * MIB, 3)


def measure(context: Context) -> Iterator[Record]:
    """The `checkpoint` evidence, or `storage_error` lines where storage refused."""
    group, root = context.group, checkpoint_folder(context)
    try:
        yield _measured(context, Store(group, root, "checkpoint"))
    except RefusedError as error:
        yield from error.refused
    finally:
        remove_checkpoints(group, root)


def _measured(context: Context, kept: Store) -> Checkpoint:
    """One checkpoint that warms up, the timed ones, the restore."""
    group, root, timed = context.group, kept.root, list[tuple[float, float, float]]()
    size, last = amount(group, context.full)
    state = _state(context, size, fill=True)
    for number in range(last + 1):
        group.beat()
        group.barrier()
        timed.append(kept.save(state, number))
        kept.remove(number - 2)
    folder = store.step_folder(root, last)
    own = store.shards(folder, group.rank)
    resident = forgotten(own)
    fresh = _state(context, size, fill=False)
    group.barrier()
    restore_s = group.seconds(lambda: kept.restore(last, fresh))
    saved, found = (store.manifest({n: v.to_local() for n, v in s.items()}) for s in (state, fresh))
    different = store.differences(saved, found)
    offered, accepted = kept.torn(last, root)
    ranks = group.gather(
        (sum(path.stat().st_size for path in own), len(saved), different, resident, offered, accepted)
    )
    sizes, entries, differing, shares, every_offered, every_accepted = zip(*ranks, strict=True)
    known = complete(shares)
    stall_s, commit_s, mark_s = (group.maxima(seconds) for seconds in zip(*timed[1:], strict=True))
    return Checkpoint(
        name=CHECKPOINTS,
        path=str(root),
        ranks=group.world,
        bytes=sum(sizes),
        stall_s=stall_s,
        commit_s=commit_s,
        mark_s=mark_s,
        restore_s=group.maxima([restore_s])[0],
        restore_resident_share=max(max(theirs, default=0.0) for theirs in known) if known else None,
        entries=sum(entries),
        different=_by_rank(differing)[:MOST_LISTED],
        torn_offered=_by_rank(every_offered),
        torn_accepted=_by_rank(every_accepted),
        left_behind=tuple(store.leftovers(folder)),
    )


def _by_rank(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"rank {rank}: {name}" for rank, theirs in enumerate(names) for name in theirs)


def _state(context: Context, size: int, *, fill: bool) -> State:
    """Tensors sharded over all ranks by rows, random or zero."""
    from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 - half a second of imports
    from torch.distributed.tensor import DTensor, Shard  # noqa: PLC0415

    group = context.group
    mesh = init_device_mesh(group.device.type, (group.world,))
    dice = torch.Generator(device="cpu").manual_seed(context.plan.seed + group.rank)
    rows = size // (TENSORS * WIDTH * 4)
    state: State = {}
    for index in range(TENSORS):
        local = torch.randn(rows, WIDTH, generator=dice) if fill else torch.zeros(rows, WIDTH)
        state[f"layer-{index}"] = DTensor.from_local(
            local.to(group.device), mesh, [Shard(0)], run_check=False
        )
    return state
