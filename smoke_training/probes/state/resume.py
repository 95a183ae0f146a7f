"""Kill and resume: an uninterrupted run, the same run cut by a SIGKILL, and the proof that both are one.

The launcher kills the victim from outside. torchrun then restarts the gang, which comes back here through
`resumed`.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from smoke_training.manifest import Choice, Part, choose, differences
from smoke_training.plan import NEXT_STEPS, KillSchedule, kill_schedule
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.state import checkpoint
from smoke_training.probes.state.replica import Replica
from smoke_training.probes.storage.disk import Refusal, refusing
from smoke_training.probes.storage.throughput import CHECKPOINTS, PREFIX, checkpoint_folder
from smoke_training.probes.training.numerics import Watch
from smoke_training.runtime import heartbeat
from smoke_training.runtime.files import write_durably

PACE_SECONDS = 0.004  # least time per interrupted step: a kill needs a moment to arrive
WAIT_FOR_KILL_SECONDS = 30.0
NOTE = "checkpoints.json"  # in the node's scratch folder: where the restarted ranks find the checkpoints


class RefusedError(RuntimeError):
    """Storage refused a checkpoint on some rank; every rank of the gang raises this at the same step."""

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(f"{len(lines)} ranks could not write their checkpoint")
        self.lines = lines


class Trial:
    """The first incarnation's part: the uninterrupted run, then the same steps again until the kill."""

    def __init__(self, context: Context) -> None:
        self.gang, self.scratch = context.gang, context.scratch
        self.schedule = kill_schedule(context.plan.seed, context.gang.world)
        self.root = _settle(context)
        self.replica = Replica(context.gang, context.plan.seed)
        self.refused = False
        self.late: list[Refusal] = []  # of commit marks: the peers hear of them at the next checkpoint
        self.heart = heartbeat.own()

    def reference(self) -> Iterator[Line]:
        """The `reference` evidence and its `numerics`; `storage_error` lines where storage refused."""
        try:
            with Watch(self.replica.model) as watch:
                yield self._reference(watch)
            yield from watch.lines(self.gang, "reference")
        except RefusedError as error:
            yield from self._give_up(error)

    def interrupted(self) -> Iterator[Line]:
        """Train until the launcher kills the victim; returns only if storage refused a checkpoint."""
        if self.refused:
            return
        try:
            self._interrupted()
        except RefusedError as error:
            yield from self._give_up(error)

    def _give_up(self, error: RefusedError) -> Iterator[Line]:
        self.refused = True
        yield from error.lines
        yield {"kind": "stopped_early", "reason": "storage refused a checkpoint; a resume was not tried"}
        _tidy(self.gang, self.root)

    def _reference(self, watch: Watch) -> Line:
        """Train uninterrupted; losses and manifests stay on disk for the restarted ranks."""
        gang, replica, schedule = self.gang, self.replica, self.schedule
        start = replica.snapshot()
        losses, manifests, seconds, size = [], {}, list[float](), 0
        for _ in range(schedule.steps + NEXT_STEPS):
            losses.append(replica.train())
            watch.checksum()
            self.heart.beat()
            if replica.step % schedule.every == 0:
                manifests[str(replica.step)] = checkpoint.manifest(replica.snapshot())
            if replica.step in (schedule.every, schedule.steps):
                began = time.perf_counter()
                size = self._save(self.root / "trial")
                seconds.append(time.perf_counter() - began)
        gang.barrier()  # nobody tidies up while another is still writing
        shutil.rmtree(self.root / "trial", ignore_errors=True)
        record = {"losses": losses, "manifests": manifests}
        write_durably(self.scratch / f"reference-{gang.rank}.json", json.dumps(record).encode())
        replica.load(start)
        means = [sum(column) / gang.world for column in zip(*gang.rows(_floats(losses)), strict=True)]
        return {
            "kind": "reference",
            "losses": means,
            "checkpoint_seconds": gang.maxima(seconds),
            "checkpoint_bytes": int(sum(row[0] for row in gang.rows([float(size)]))),
            "entries": len(manifests[str(schedule.every)]),
        }

    def _interrupted(self) -> None:
        """The same steps again with checkpoints, telling the launcher the step, until the kill."""
        replica, schedule = self.replica, self.schedule
        progress = os.open(self.scratch / f"progress-{self.gang.rank}", os.O_CREAT | os.O_WRONLY, 0o600)
        while replica.step < schedule.steps:
            began = time.perf_counter()
            replica.train()
            self.heart.beat()
            os.pwrite(progress, b"%-15d %-15d\n" % (os.getpid(), replica.step), 0)
            if replica.step % schedule.every == 0:
                self._save(self.root)
            time.sleep(max(0.0, PACE_SECONDS - (time.perf_counter() - began)))
        deadline = time.monotonic() + WAIT_FOR_KILL_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.1)
            self.heart.beat()
        raise RuntimeError(
            f"rank {schedule.victim} was to be killed at step {schedule.step}, but nothing killed it"
        )

    def _save(self, root: Path) -> int:
        """Write this rank's shard; once all ranks have theirs, the node's commit mark. The shard's bytes."""
        gang, step, state = self.gang, self.replica.step, self.replica.snapshot()
        where, size, digest = checkpoint.folder(root, step, gang.rank), 0, ""
        refusals, self.late = self.late, []
        wanted = sum(value.nbytes for value in state.values() if hasattr(value, "nbytes"))
        with refusing(refusals, "write", where, wanted):
            size, digest = checkpoint.write(where, state)
        found = gang.gather((digest, [self._line(item, where) for item in refusals]))
        pairs = [item for item in found if isinstance(item, tuple)]
        if any(lines for _, lines in pairs):
            raise RefusedError([line for _, lines in pairs for line in lines])
        if gang.local_rank == 0:
            with refusing(self.late, "write", checkpoint.step_folder(root, step)):
                checkpoint.commit(root, step, gang.node, {rank: d for rank, (d, _) in enumerate(pairs)})
        return size

    def _line(self, item: Refusal, where: Path) -> Line:
        root, rank = where.parent.parent, self.gang.rank
        older = [step for step in checkpoint.steps(root) if step < self.replica.step]
        before = checkpoint.inspect(root, older[-1], rank) if older else None
        return {
            **item.line("resume", CHECKPOINTS, self.gang.rank, self.gang.node),
            "left_behind": checkpoint.leftovers(where) if where.exists() else [],
            "previous_complete": None if before is None else before.fault is None,
        }


def resumed(context: Context) -> Iterator[Line]:
    """Resume from the newest checkpoint that is complete on all ranks and compare.

    Yields the `integrity` evidence, then, unless there is nothing to resume from, the `resume` evidence.
    """
    gang, seed, scratch = context.gang, context.plan.seed, context.scratch
    schedule = kill_schedule(seed, gang.world)
    killed = _kill_record(gang, scratch)
    root = Path(json.loads((scratch / NOTE).read_text())["root"])
    try:
        choice, nodes = _choose(gang, root)
        yield _integrity(choice, nodes, root)
        if choice.step is None:
            return
        replica = Replica(gang, seed)
        replica.load(checkpoint.read(checkpoint.folder(root, choice.step, gang.rank)))
        mine, mttr = _compare(replica, schedule, scratch, float(str(killed["monotonic"])))
        mine |= _torn(checkpoint.folder(root, choice.step, gang.rank), scratch / "torn", gang.rank)
        yield {
            "kind": "resume",
            "victim": killed["rank"],
            "signal": killed["signal"],
            "killed_at_step": killed["step"],
            "resumed_from": choice.step,
            "committed": choice.committed,
            "every": schedule.every,
            "mttr_seconds": _of_victim(gang.gather(mttr), killed),
            "ranks": gang.gather(mine),
        }
    finally:
        _tidy(gang, root)


def _settle(context: Context) -> Path:
    """Where this run's checkpoints go; noted in the scratch folder, where the restarted ranks look for it."""
    root = checkpoint_folder(context)
    if context.gang.local_rank == 0:
        write_durably(context.scratch / NOTE, json.dumps({"root": str(root)}).encode())
    return root


def _tidy(gang: Gang, root: Path) -> None:
    """Remove the checkpoints from the plan's storage; the launcher removes those in the scratch folder."""
    with contextlib.suppress(RuntimeError):  # a peer may be gone
        gang.barrier()
    if root.name.startswith(PREFIX) and gang.local_rank == 0:
        shutil.rmtree(root, ignore_errors=True)


def _choose(gang: Gang, root: Path) -> tuple[Choice, list[int]]:
    """What all ranks agree to resume from, and the node of every rank."""
    marks = checkpoint.committed(root)
    known = [
        item for item in gang.gather((gang.node, checkpoint.steps(root), marks)) if isinstance(item, tuple)
    ]
    promised = {step: digests for _, _, theirs in known for step, digests in theirs.items()}
    every = sorted({step for _, steps, _ in known for step in steps} | promised.keys())
    mine = []
    for step in every:
        shard = checkpoint.inspect(root, step, gang.rank, promised.get(step, {}).get(gang.rank))
        mine.append(Part(rank=gang.rank, **dataclasses.asdict(shard)))
    parts = [part for found in gang.gather(mine) if isinstance(found, list) for part in found]
    return choose(parts, promised.keys(), gang.world), [node for node, _, _ in known]


def _integrity(choice: Choice, nodes: list[int], root: Path) -> Line:
    def told(part: Part) -> Line:
        found = dataclasses.asdict(part)
        del found["readable"]
        return {**found, "node": nodes[part.rank]}

    return {
        "kind": "integrity",
        "name": CHECKPOINTS,
        "path": str(root),
        "resumed_from": choice.step,
        "committed": choice.committed,
        "damaged": [told(part) for part in choice.damaged],
        "unreadable": [told(part) for part in choice.unreadable],
    }


def _compare(
    replica: Replica, schedule: KillSchedule, scratch: Path, killed_at: float
) -> tuple[dict[str, object], float]:
    """Train on beside the uninterrupted run's record; what differs, and seconds from kill to first step."""
    record = json.loads((scratch / f"reference-{replica.gang.rank}.json").read_text())
    entries, different, equal, compared, mttr = 0, list[str](), 0, 0, 0.0
    heart = heartbeat.own()
    while True:
        twin = record["manifests"].get(str(replica.step))
        if twin is not None:
            found = checkpoint.manifest(replica.snapshot())
            entries += len(twin)
            different += [f"step {replica.step}: {name}" for name in differences(twin, found)]
        if replica.step == schedule.steps + NEXT_STEPS:
            break
        loss = replica.train()
        heart.beat()
        mttr = mttr or time.monotonic() - killed_at
        compared += 1
        equal += loss == record["losses"][replica.step - 1]
    return {
        "rank": replica.gang.rank,
        "entries": entries,
        "different": different[:20],
        "losses_compared": compared,
        "losses_equal": equal,
    }, mttr


def _torn(shard: Path, room: Path, rank: int) -> dict[str, list[str]]:
    """Damage copies of this rank's shard in every known way; which damages were offered, and not refused."""
    accepted = list[str]()
    for number, (name, damage) in enumerate(checkpoint.TEARS.items()):
        copy = checkpoint.folder(room, number, rank)
        shutil.copytree(shard, copy)
        damage(copy)
        with contextlib.suppress(checkpoint.TornCheckpointError):
            checkpoint.read(copy)
            accepted.append(name)
        shutil.rmtree(copy)
    return {"torn_offered": list(checkpoint.TEARS), "torn_accepted": accepted}


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


def _floats(losses: list[str]) -> list[float]:
    return [float.fromhex(loss) for loss in losses]
