"""A training run of two ranks in one pod that resumes from its newest complete checkpoint and reports it.

Its evidence is one line of JSON a step: the step that was trained, the exact loss of rank 0, its process.
"""

import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

from smoke_training import checkpoint_files
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.replica import TrainingReplica

EVERY, STEPS, PACE_S = 5, 20, 0.15


def main() -> None:
    """Train to the end; each rank keeps its own entries in the checkpoints."""
    root, meeting = Path(os.environ["CHECKPOINTS"]), Path(os.environ["TMPDIR"]) / "meeting"
    child = os.fork()
    rank = 0 if child else 1
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    cpu = torch.device("cpu")
    group = Group(rank=rank, world=2, local_rank=rank, node=0, device=cpu, backend="gloo")
    kept, replica = store.CheckpointStore(group, root, "train"), TrainingReplica(group, seed=7)
    prefix = f"rank-{rank}/"
    newest = _newest(group, root)
    if newest is not None:
        room = store.own_state(checkpoint_files.step_folder(root, newest))
        state = {name: value for name, value in room.items() if name.startswith(prefix)}
        kept.restore(newest, state)
        replica.load({name.removeprefix(prefix): value for name, value in state.items()})
    with (root / "evidence.jsonl").open("a") as evidence:
        while replica.step < STEPS:
            loss = replica.train()
            if rank == 0:
                line = {"step": replica.step, "loss": loss, "pid": os.getpid()}
                print(json.dumps(line), file=evidence, flush=True)
            if replica.step % EVERY == 0:
                kept.save({prefix + name: value for name, value in replica.snapshot().items()}, replica.step)
            time.sleep(PACE_S)
    group.barrier()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    os._exit(0)


def _newest(group: Group, root: Path) -> int | None:
    """The newest step whose checkpoint is whole on every rank."""
    mine = {step for step in checkpoint_files.steps(root) if store.inspect(root, step, group).fault is None}
    return max(set.intersection(*group.gather(mine)), default=None)


if __name__ == "__main__":
    main()
