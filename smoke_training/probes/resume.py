"""Kill and resume: an uninterrupted run, the same run cut by a SIGKILL, and the proof that both are one.

The launcher kills the victim from outside. torchrun then restarts the gang, which comes back here through
`resumed`.
"""

import json
import os
import random
import shutil
import time
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

from smoke_training.manifest import differences, newest_common
from smoke_training.plan import NEXT_STEPS, KillSchedule
from smoke_training.probes import checkpoint, transformer
from smoke_training.probes.gang import Gang
from smoke_training.runtime.files import write_durably

PACE_SECONDS = 0.004  # least time per interrupted step: a kill needs a moment to arrive
WAIT_FOR_KILL_SECONDS = 30.0


class Replica:
    """Model, AdamW, dropout and a shuffled data stream: a training state in which everything matters."""

    def __init__(self, gang: Gang, seed: int) -> None:
        self.gang, self.seed, self.size = gang, seed, transformer.STATE
        self.model = DistributedDataParallel(transformer.build(self.size, seed, gang.device, torch.float32))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.step = self.position = 0
        torch.manual_seed(seed + 1 + gang.rank)  # dropout differs per rank, as in real training
        random.seed(seed + 1 + gang.rank)
        # DDP reorders its buckets after the first backward, which changes the order of additions. Two
        # throwaway passes put the first and every later incarnation into that same final order before any
        # state is loaded.
        for _ in range(2):
            self.model(transformer.tokens(self.size, seed, 0, gang.device)).backward()
            self.optimizer.zero_grad()

    def train(self) -> str:
        """One step; returns this rank's loss as an exact hexadecimal float."""
        draw = random.randrange(1 << 20)  # noqa: S311 - the shuffle whose generator state a checkpoint must carry
        batch = transformer.tokens(self.size, self.seed + draw, self.position, self.gang.device)
        self.optimizer.zero_grad()
        loss = self.model(batch)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        self.position += self.gang.world
        return float(loss.detach()).hex()

    def snapshot(self) -> checkpoint.State:
        """The state after the last step."""
        return checkpoint.snapshot(self.model.module, self.optimizer, self.step, self.position)

    def load(self, state: checkpoint.State) -> None:
        """Continue from a snapshot."""
        self.step, self.position = checkpoint.restore(state, self.model.module, self.optimizer)


def reference(gang: Gang, replica: Replica, schedule: KillSchedule, scratch: Path) -> dict[str, object]:
    """Train uninterrupted, remember losses and manifests on disk; returns the `reference` evidence."""
    replica.position = gang.rank
    start = replica.snapshot()
    losses, manifests, seconds, size = [], {}, [], 0
    for _ in range(schedule.steps + NEXT_STEPS):
        losses.append(replica.train())
        if replica.step % schedule.every == 0:
            manifests[str(replica.step)] = checkpoint.manifest(replica.snapshot())
        if replica.step in (schedule.every, schedule.steps):
            began = time.perf_counter()
            size = checkpoint.write(scratch / "trial" / f"rank-{gang.rank}", replica.snapshot())
            seconds.append(time.perf_counter() - began)
    shutil.rmtree(scratch / "trial" / f"rank-{gang.rank}")
    record = {"losses": losses, "manifests": manifests}
    write_durably(scratch / f"reference-{gang.rank}.json", json.dumps(record).encode())
    replica.load(start)
    return {
        "kind": "reference",
        "losses": [sum(column) / gang.world for column in zip(*gang.rows(_floats(losses)), strict=True)],
        "checkpoint_seconds": gang.maxima(seconds),
        "checkpoint_bytes": int(sum(row[0] for row in gang.rows([float(size)]))),
        "entries": len(manifests[str(schedule.every)]),
    }


def interrupted(gang: Gang, replica: Replica, schedule: KillSchedule, scratch: Path) -> None:
    """Train the same steps again with checkpoints, telling the launcher the step, until the kill."""
    progress = os.open(scratch / f"progress-{gang.rank}", os.O_CREAT | os.O_WRONLY, 0o600)
    while replica.step < schedule.steps:
        began = time.perf_counter()
        replica.train()
        os.pwrite(progress, b"%-15d %-15d\n" % (os.getpid(), replica.step), 0)
        if replica.step % schedule.every == 0:
            where = checkpoint.folder(scratch / "checkpoints", replica.step, gang.rank)
            checkpoint.write(where, replica.snapshot())
        time.sleep(max(0.0, PACE_SECONDS - (time.perf_counter() - began)))
    time.sleep(WAIT_FOR_KILL_SECONDS)
    raise RuntimeError(
        f"rank {schedule.victim} was to be killed at step {schedule.step}, but nothing killed it"
    )


def resumed(gang: Gang, seed: int, schedule: KillSchedule, scratch: Path) -> dict[str, object]:
    """Resume from the newest checkpoint that is complete on all ranks and compare; the `resume` evidence."""
    killed = _kill_record(gang, scratch)
    replica = Replica(gang, seed)
    root = scratch / "checkpoints"
    torn = _offer_torn(root, scratch / "torn", gang.rank)
    complete = [
        item for item in gang.gather(checkpoint.complete_steps(root, gang.rank)) if isinstance(item, list)
    ]
    step = newest_common(complete)
    if step is None:
        raise RuntimeError(f"no step has a complete checkpoint on all ranks: {complete}")
    replica.load(checkpoint.read(checkpoint.folder(root, step, gang.rank)))
    record = json.loads((scratch / f"reference-{gang.rank}.json").read_text())
    entries, different, equal, compared = 0, list[str](), 0, 0
    mttr = None
    while True:
        twin = record["manifests"].get(str(replica.step))
        if twin is not None:
            found = checkpoint.manifest(replica.snapshot())
            entries += len(twin)
            different += [f"step {replica.step}: {name}" for name in differences(twin, found)]
        if replica.step == schedule.steps + NEXT_STEPS:
            break
        loss = replica.train()
        if mttr is None:
            mttr = time.monotonic() - float(str(killed["monotonic"]))
        compared += 1
        equal += loss == record["losses"][replica.step - 1]
    mine = {
        "rank": gang.rank,
        "entries": entries,
        "different": different[:20],
        "losses_compared": compared,
        "losses_equal": equal,
        "torn_offered": list(checkpoint.TEARS),
        "torn_accepted": torn,
    }
    return {
        "kind": "resume",
        "victim": killed["rank"],
        "signal": killed["signal"],
        "killed_at_step": killed["step"],
        "resumed_from": step,
        "every": schedule.every,
        "mttr_seconds": _of_victim(gang.gather(mttr), killed),
        "ranks": gang.gather(mine),
    }


def _kill_record(gang: Gang, scratch: Path) -> dict[str, object]:
    """What the victim's launcher wrote down; a restart that nobody ordered is an error, not a recovery."""
    path = scratch / "killed.json"
    mine = json.loads(path.read_text()) if path.exists() else None
    for item in gang.gather(mine):
        if isinstance(item, dict):
            return item
    raise RuntimeError("the gang was restarted although no rank was killed on purpose")


def _of_victim(values: list[object], killed: dict[str, object]) -> object:
    """The clock of the kill is the victim's node's: only its own rank can subtract it."""
    return values[int(str(killed["rank"]))]


def _offer_torn(root: Path, torn: Path, rank: int) -> list[str]:
    """Damage copies of a complete checkpoint in every known way; returns the damages not refused."""
    steps = checkpoint.complete_steps(root, rank)
    if not steps:
        return list(checkpoint.TEARS)
    accepted = []
    for number, (name, damage) in enumerate(checkpoint.TEARS.items()):
        copy = checkpoint.folder(torn, number, rank)
        shutil.copytree(checkpoint.folder(root, steps[-1], rank), copy)
        damage(copy)
        try:
            checkpoint.read(copy)
        except checkpoint.TornCheckpointError:
            continue
        accepted.append(name)
    return accepted


def _floats(losses: list[str]) -> list[float]:
    return [float.fromhex(loss) for loss in losses]
