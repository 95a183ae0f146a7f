"""Measure asynchronous checkpoints of sharded training (FSDP2), and compare the restored state."""

import json
import math
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from smoke_training.checkpoint_files import step_folder
from smoke_training.evidence import Record
from smoke_training.evidence.state import Checkpoint
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.replica import below
from smoke_training.probes.state.store import CheckpointStore, CheckpointWriteError, State
from smoke_training.probes.stopwatch import complete
from smoke_training.probes.storage.disk import forgotten
from smoke_training.probes.storage.throughput import CHECKPOINTS, checkpoint_folder, remove_checkpoints

MIB = 1 << 20
MOST_LISTED = 20  # entries that differ


def amount(group: Group, full: bool) -> tuple[int, int]:
    """Return the bytes of one rank's shards, and the number of timed checkpoints after a warm-up.

    Large enough to measure the rate, small enough for the budget.
    """
    if group.cuda:
        return (1024 if full else 256) * MIB, 3
    return (32 * MIB, 5) if full else (8 * MIB, 3)


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `checkpoint` evidence, or `storage_error` lines where storage refused."""
    group, root = context.group, checkpoint_folder(context)
    try:
        yield _measured(context, CheckpointStore(group, root, "checkpoint"))
    except CheckpointWriteError as error:
        yield from error.refused
    finally:
        remove_checkpoints(group, root)


def _measured(context: ProbeContext, kept: CheckpointStore) -> Checkpoint:
    """One checkpoint that warms up, the timed ones, the restore."""
    group, root, timed = context.group, kept.root, list[tuple[float, float, float]]()
    size, last = amount(group, context.full)
    training = ShardedTraining(group, size, context.plan.seed)
    training.step()
    state = training.snapshot()
    for number in range(last + 1):
        group.beat()
        group.barrier()
        timed.append(kept.save(state, number))
        kept.remove(number - 2)
    folder = step_folder(root, last)
    own = store.shards(folder, group.rank)
    resident = forgotten(own)
    fresh = ShardedTraining(group, size, context.plan.seed + 1)
    room = fresh.snapshot()
    group.barrier()
    restore_s = group.seconds(lambda: kept.restore(last, room))
    fresh.load(room)
    saved, found = store.manifest(state), store.manifest(fresh.snapshot())
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


class ShardedTraining:
    """Layers and their optimizer, sharded over all ranks by FSDP2, with about so many bytes per rank.

    The state is that of DCP's own `get_state_dict` and `set_state_dict`. Tensors are few and large, as those
    of large models are: with small ones DCP's bookkeeping takes most of the time.
    """

    def __init__(self, group: Group, size: int, seed: int) -> None:
        from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415 - half a second of imports
        from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

        self.group, self.width = group, 4096 if group.cuda else 1024
        # DCP writes entries equal on all ranks once, to a disk that other nodes may not see.
        self.own = f"rank-{group.rank}/"
        layer_bytes = 12 * self.width**2  # 4 for a weight, with two moments each
        count = math.ceil(group.world * size / layer_bytes)
        mesh = init_device_mesh(group.device.type, (group.world,))
        torch.manual_seed(seed)
        with group.device:  # billions of numbers are drawn there, not on the CPU
            layers = [nn.Linear(self.width, self.width, bias=False) for _ in range(count)]
        for layer in layers:
            nn.init.normal_(layer.weight, std=self.width**-0.5)  # preserves the norm
            fully_shard(layer, mesh=mesh)
        self.model = nn.Sequential(*layers)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def step(self) -> None:
        """One step, after which no moment is zero."""
        dice = torch.Generator().manual_seed(self.group.rank)
        batch = torch.randn(4, self.width, generator=dice).to(self.group.device)
        self.model(batch).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def snapshot(self) -> State:
        """Return all entries, flat; tensors are not copies."""
        from torch.distributed.checkpoint.state_dict import get_state_dict  # noqa: PLC0415 - as in `store`

        model, kept = get_state_dict(self.model, self.optimizer)
        optimizer: State = {**kept}
        entries = {f"model/{name}": value for name, value in model.items()}
        for parameter, moments in optimizer["state"].items():
            entries |= {f"optimizer/{parameter}/{name}": value for name, value in moments.items()}
        entries["groups"] = json.dumps(optimizer["param_groups"], sort_keys=True)
        return {
            name if hasattr(value, "to_local") else self.own + name: value for name, value in entries.items()
        }

    def load(self, state: State) -> None:
        """Continue from a snapshot."""
        from torch.distributed.checkpoint.state_dict import set_state_dict  # noqa: PLC0415

        state = {name.removeprefix(self.own): value for name, value in state.items()}
        moments = dict[str, State]()
        for key, value in below(state, "optimizer/").items():
            parameter, _, name = key.rpartition("/")
            moments.setdefault(parameter, {})[name] = value
        optimizer: State = {"state": moments, "param_groups": json.loads(state["groups"])}
        set_state_dict(
            self.model, self.optimizer, model_state_dict=below(state, "model/"), optim_state_dict=optimizer
        )
