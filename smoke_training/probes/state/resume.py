"""Kill and resume: an uninterrupted run, the same run cut by a SIGKILL, and the proof that both are one.

The launcher kills the victim from outside. torchrun then restarts all ranks, which come back here
through `resumed`.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from smoke_training.evidence import Record
from smoke_training.evidence.state import Damage, Integrity, RankResume, Reference, Resume
from smoke_training.evidence.world import StoppedEarly
from smoke_training.plan import NEXT_STEPS, KillSchedule, kill_schedule
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.choice import Choice, Part, choose
from smoke_training.probes.state.replica import Replica
from smoke_training.probes.state.store import RefusedError, State, Store
from smoke_training.probes.storage.throughput import CHECKPOINTS, PREFIX, checkpoint_folder
from smoke_training.probes.training.numerics import Watch
from smoke_training.runtime import heartbeat
from smoke_training.runtime.files import write_durably

PHASE = "resume"
PACE_SECONDS = 0.004  # least time per interrupted step: a kill needs a moment to arrive
WAIT_FOR_KILL_SECONDS = 30.0
NOTE = "checkpoints.json"  # in the node's scratch folder: where the restarted ranks find the checkpoints


class Trial:
    """The first attempt's part: the uninterrupted run, then the same steps again until the kill."""

    def __init__(self, context: Context) -> None:
        self.group, self.scratch = context.group, context.scratch
        self.schedule = kill_schedule(context.plan.seed, context.group.world)
        self.root = _settle(context)
        self.replica = Replica(context.group, context.plan.seed)
        self.refused = False
        self.store = Store(context.group, self.root, PHASE)
        self.trial = Store(context.group, self.root / "trial", PHASE)
        self.heart = heartbeat.own()

    def reference(self) -> Iterator[Record]:
        """The `reference` evidence and its `numerics`; `storage_error` lines where storage refused."""
        try:
            with Watch(self.replica.model, self.group) as watch:
                yield self._reference(watch)
            yield watch.evidence("reference")
        except RefusedError as error:
            yield from self._give_up(error)

    def interrupted(self) -> Iterator[Record]:
        """Train until the launcher kills the victim; returns only if storage refused a checkpoint."""
        if self.refused:
            return
        try:
            self._interrupted()
        except RefusedError as error:
            yield from self._give_up(error)

    def _give_up(self, error: RefusedError) -> Iterator[Record]:
        self.refused = True
        yield from error.refused
        yield StoppedEarly(reason="storage refused a checkpoint; a resume was not tried")
        _tidy(self.group, self.root)

    def _reference(self, watch: Watch) -> Reference:
        """Train uninterrupted; losses and manifests stay on disk for the restarted ranks."""
        group, replica, schedule = self.group, self.replica, self.schedule
        start = replica.snapshot()
        losses, manifests, seconds = list[str](), dict[str, dict[str, str]](), list[float]()
        for _ in range(schedule.steps + NEXT_STEPS):
            losses.append(replica.train())
            watch.checksum()
            self.heart.beat()
            if replica.step % schedule.every == 0:
                manifests[str(replica.step)] = store.manifest(replica.snapshot())
            if replica.step in (schedule.every, schedule.steps):
                began = time.perf_counter()
                self._save(self.trial)
                seconds.append(time.perf_counter() - began)
        shards = store.shards(store.step_folder(self.trial.root, schedule.steps), group.rank)
        size = sum(group.gather(sum(path.stat().st_size for path in shards)))
        group.barrier()  # no rank tidies up while another is still writing
        shutil.rmtree(self.trial.root, ignore_errors=True)
        record = {"losses": losses, "manifests": manifests}
        write_durably(self.scratch / f"reference-{group.rank}.json", json.dumps(record).encode())
        replica.load(start)
        rows = group.rows([float.fromhex(loss) for loss in losses])
        return Reference(
            losses=tuple(sum(column) / group.world for column in zip(*rows, strict=True)),
            checkpoint_seconds=group.maxima(seconds),
            checkpoint_bytes=size,
            entries=len(manifests[str(schedule.every)]),
        )

    def _interrupted(self) -> None:
        """The same steps again with checkpoints, telling the launcher the step, until the kill."""
        replica, schedule = self.replica, self.schedule
        progress = os.open(self.scratch / f"progress-{self.group.rank}", os.O_CREAT | os.O_WRONLY, 0o600)
        while replica.step < schedule.steps:
            began = time.perf_counter()
            replica.train()
            self.heart.beat()
            os.pwrite(progress, b"%-15d %-15d\n" % (os.getpid(), replica.step), 0)
            if replica.step % schedule.every == 0:
                self._save(self.store)
            time.sleep(max(0.0, PACE_SECONDS - (time.perf_counter() - began)))
        deadline = time.monotonic() + WAIT_FOR_KILL_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.1)
            self.heart.beat()
        raise RuntimeError(
            f"rank {schedule.victim} was to be killed at step {schedule.step}, but nothing killed it"
        )

    def _save(self, kept: Store) -> None:
        """Write this rank's state; the ranks' own entries keep apart by their names."""
        prefix = _prefix(self.group)
        kept.save(
            {prefix + name: value for name, value in self.replica.snapshot().items()}, self.replica.step
        )


def resumed(context: Context) -> Iterator[Record]:
    """Resume from the newest checkpoint that is complete on all ranks and compare.

    Yields the `integrity` evidence, then, unless there is nothing to resume from, the `resume` evidence.
    """
    root = Path(json.loads((context.scratch / NOTE).read_text())["root"])
    try:
        yield from _resumed(context, root)
    except RefusedError as error:
        yield from error.refused
        yield StoppedEarly(reason="storage refused a copy of a checkpoint; torn ones were not tried")
    except Exception:
        # This rank alone: the others wait elsewhere, and a barrier here would hide why until a timeout.
        _remove(context.group, root)
        raise
    _tidy(context.group, root)


def _resumed(context: Context, root: Path) -> Iterator[Record]:
    group, seed, scratch = context.group, context.plan.seed, context.scratch
    schedule = kill_schedule(seed, group.world)
    killed = _kill_record(group, scratch)
    kept = Store(group, root, PHASE)
    choice = _choose(kept)
    yield Integrity(
        name=CHECKPOINTS,
        path=str(root),
        resumed_from=choice.step,
        committed=choice.committed,
        damaged=tuple(map(_damage, choice.damaged)),
        unreadable=tuple(map(_damage, choice.unreadable)),
    )
    if choice.step is None:
        return
    replica = Replica(group, seed)
    replica.load(_restored(kept, choice.step))
    mine, mttr = _compare(replica, schedule, scratch, float(killed["monotonic"]))
    offered, accepted = kept.torn(choice.step, scratch)
    ranks = group.gather(replace(mine, torn_offered=offered, torn_accepted=accepted))
    yield Resume(
        victim=killed["rank"],
        signal=killed["signal"],
        killed_at_step=killed["step"],
        resumed_from=choice.step,
        committed=choice.committed,
        every=schedule.every,
        # The clock of the kill is the victim's node's: only its own rank can subtract it.
        mttr_seconds=group.gather(mttr)[killed["rank"]],
        ranks=tuple(ranks),
    )


def _prefix(group: Group) -> str:
    return f"rank-{group.rank}/"


def _restored(kept: Store, step: int) -> State:
    """The state of this rank at a step."""
    prefix = _prefix(kept.group)
    room = store.own_state(store.step_folder(kept.root, step))
    state = {name: value for name, value in room.items() if name.startswith(prefix)}
    kept.restore(step, state)
    return {name.removeprefix(prefix): value for name, value in state.items()}


def _settle(context: Context) -> Path:
    """Where this run's checkpoints go; noted in the scratch folder, where the restarted ranks look for it."""
    root = checkpoint_folder(context)
    if context.group.local_rank == 0:
        write_durably(context.scratch / NOTE, json.dumps({"root": str(root)}).encode())
    return root


def _tidy(group: Group, root: Path) -> None:
    """Remove the checkpoints from the plan's storage; the launcher removes those in the scratch folder."""
    with contextlib.suppress(RuntimeError):  # a peer may be gone
        group.barrier()
    _remove(group, root)


def _remove(group: Group, root: Path) -> None:
    if root.name.startswith(PREFIX) and group.local_rank == 0:
        shutil.rmtree(root, ignore_errors=True)


def _choose(kept: Store) -> Choice:
    """What all ranks agree to resume from."""
    group, root = kept.group, kept.root
    here = {step: store.mark_in(store.step_folder(root, step)) for step in store.steps(root)}
    promised: dict[int, store.Digests | None] = {}
    for theirs in group.gather(here):
        promised |= {step: mark for step, mark in theirs.items() if mark or step not in promised}
    mine = [store.inspect(root, step, group, promised[step]) for step in sorted(promised)]
    parts = [part for theirs in group.gather(mine) for part in theirs]
    return choose(parts, {step for step, mark in promised.items() if mark}, group.world)


def _damage(part: Part) -> Damage:
    fault = part.fault or ""
    return Damage(rank=part.rank, node=part.node, step=part.step, path=part.path, fault=fault)


def _compare(
    replica: Replica, schedule: KillSchedule, scratch: Path, killed_at: float
) -> tuple[RankResume, float]:
    """Train on beside the uninterrupted run's record; what differs, and seconds from kill to first step."""
    record = json.loads((scratch / f"reference-{replica.group.rank}.json").read_text())
    entries, different, equal, compared, mttr = 0, list[str](), 0, 0, 0.0
    heart = heartbeat.own()
    while True:
        twin = record["manifests"].get(str(replica.step))
        if twin is not None:
            found = store.manifest(replica.snapshot())
            entries += len(twin)
            different += [f"step {replica.step}: {name}" for name in store.differences(twin, found)]
        if replica.step == schedule.steps + NEXT_STEPS:
            break
        loss = replica.train()
        heart.beat()
        mttr = mttr or time.monotonic() - killed_at
        compared += 1
        equal += loss == record["losses"][replica.step - 1]
    outcome = RankResume(
        rank=replica.group.rank,
        entries=entries,
        different=tuple(different[:20]),
        losses_compared=compared,
        losses_equal=equal,
        torn_offered=(),
        torn_accepted=(),
    )
    return outcome, mttr


def _kill_record(group: Group, scratch: Path) -> dict[str, Any]:
    """What the victim's launcher wrote down; a restart without it is an error, not a recovery."""
    path = scratch / "killed.json"
    mine: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    for item in group.gather(mine):
        if item is not None:
            return item
    raise RuntimeError("the ranks were restarted although no rank was killed on purpose")
