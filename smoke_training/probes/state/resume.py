"""Kill and resume: an uninterrupted run, the same run cut by a SIGKILL, and the proof that both are equal.

The launcher kills the victim from outside. torchrun then restarts all ranks, which continue here
through `resumed`.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from smoke_training.checkpoint_files import Digests, mark_in, step_folder, steps
from smoke_training.evidence import Record
from smoke_training.evidence.state import Damage, Integrity, RankResume, ReferenceRun, Resume
from smoke_training.evidence.world import StoppedEarly
from smoke_training.files import write_durably
from smoke_training.names import FORKED
from smoke_training.plan import NEXT_STEPS, KillSchedule, kill_schedule
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.replica import TrainingReplica
from smoke_training.probes.state.store import CheckpointStore, CheckpointWriteError, Part, State
from smoke_training.probes.storage.throughput import CHECKPOINTS, checkpoint_folder, remove_checkpoints
from smoke_training.probes.training.numerics import GradientWatch

PHASE = "resume"
PACE_SECONDS = 0.004  # least time per interrupted step: a kill takes time to arrive
WAIT_FOR_KILL_SECONDS = 30.0
NOTE = "checkpoints.json"  # in the node's scratch folder: locates the checkpoints for restarted ranks


class KillTrial:
    """The first attempt's part: the uninterrupted run, then the same steps again until the kill."""

    def __init__(self, context: ProbeContext) -> None:
        self.group, self.scratch = context.group, context.scratch
        self.schedule = kill_schedule(context.plan.seed, context.group.world)
        self.root = checkpoint_folder(context)
        if self.group.local_rank == 0:
            write_durably(self.scratch / NOTE, json.dumps({"root": str(self.root)}).encode())
        self.replica = TrainingReplica(context.group, context.plan.seed)
        self.refused = False
        self.store = CheckpointStore(context.group, self.root, PHASE)

    def reference(self) -> Iterator[Record]:
        """The `reference` evidence and its `numerics`; `storage_error` lines where storage refused."""
        try:
            with GradientWatch(self.replica.model, self.group) as watch:
                yield self._reference(watch)
            yield watch.evidence("reference")
        except CheckpointWriteError as error:
            yield from self._give_up(error)

    def interrupted(self) -> Iterator[Record]:
        """Train until the launcher kills the victim; returns only if storage refused a checkpoint."""
        if self.refused:
            return
        try:
            self._interrupted()
        except CheckpointWriteError as error:
            yield from self._give_up(error)

    def _give_up(self, error: CheckpointWriteError) -> Iterator[Record]:
        self.refused = True
        yield from error.refused
        yield StoppedEarly(reason="storage refused a checkpoint; a resume was not tried")
        remove_checkpoints(self.group, self.root)

    def _reference(self, watch: GradientWatch) -> ReferenceRun:
        """Train uninterrupted; losses and manifests stay on disk for the restarted ranks."""
        group, replica, schedule = self.group, self.replica, self.schedule
        start, seconds = replica.snapshot(), list[float]()

        def after() -> None:
            watch.checksum()
            if replica.step in (schedule.every, schedule.steps):
                seconds.append(group.seconds(self._save))

        record = _trained(replica, schedule, watch, after)
        shards = store.shards(step_folder(self.root, schedule.steps), group.rank)
        size = sum(group.gather(sum(path.stat().st_size for path in shards)))
        remove_checkpoints(group, self.root)
        write_durably(self.scratch / f"reference-{group.rank}.json", json.dumps(record).encode())
        replica.load(start)
        rows = group.rows([float.fromhex(loss) for loss in record["losses"].values()])
        return ReferenceRun(
            losses=tuple(sum(column) / group.world for column in zip(*rows, strict=True)),
            checkpoint_seconds=group.maxima(seconds),
            checkpoint_bytes=size,
            entries=len(record["manifests"][str(schedule.every)]),
        )

    def _interrupted(self) -> None:
        """Train the same steps again with checkpoints, reporting steps to the launcher, until the kill."""
        replica, schedule = self.replica, self.schedule
        progress = os.open(self.scratch / f"progress-{self.group.rank}", os.O_CREAT | os.O_WRONLY, 0o600)
        while replica.step < schedule.steps:
            began = time.perf_counter()
            replica.train()
            self.group.beat()
            os.pwrite(progress, b"%-15d %-15d\n" % (os.getpid(), replica.step), 0)
            if replica.step % schedule.every == 0:
                self._save()
            time.sleep(max(0.0, PACE_SECONDS - (time.perf_counter() - began)))
        deadline = time.monotonic() + WAIT_FOR_KILL_SECONDS
        while time.monotonic() < deadline:
            time.sleep(0.1)
            self.group.beat()
        raise RuntimeError(
            f"rank {schedule.victim} was to be killed at step {schedule.step}, but nothing killed it"
        )

    def _save(self) -> None:
        """Write this rank's state; the ranks' own entries keep apart by their names."""
        state = {f"rank-{self.group.rank}/{name}": v for name, v in self.replica.snapshot().items()}
        self.store.save(state, self.replica.step)


def resumed(context: ProbeContext) -> Iterator[Record]:
    """Resume from the newest checkpoint that is complete on all ranks and compare.

    Yields the `integrity` evidence, then, unless there is nothing to resume from, the `resume` evidence.
    """
    group, root = context.group, Path(json.loads((context.scratch / NOTE).read_text())["root"])
    try:
        yield from _resumed(context, CheckpointStore(group, root, PHASE))
    except CheckpointWriteError as error:
        yield from error.refused
        yield StoppedEarly(reason="storage refused a copy of a checkpoint; torn ones were not tried")
    except Exception:
        # Only on this rank: the others wait elsewhere; a barrier here would hide the cause until a timeout.
        if group.local_rank == 0:
            shutil.rmtree(root, ignore_errors=True)
        raise
    remove_checkpoints(group, root)


def _resumed(context: ProbeContext, kept: CheckpointStore) -> Iterator[Record]:
    group, scratch = context.group, context.scratch
    schedule = kill_schedule(context.plan.seed, group.world)
    killed = _kill_record(group, scratch)
    integrity = _integrity(kept)
    yield integrity
    step = integrity.resumed_from
    if step is None:
        return
    replica = TrainingReplica(group, context.plan.seed)
    replica.load(_restored(kept, step))
    mine, mttr = _compare(replica, schedule, scratch, float(killed["monotonic"]))
    offered, accepted = kept.torn(step, scratch)
    ranks = group.gather(replace(mine, torn_offered=offered, torn_accepted=accepted))
    yield Resume(
        victim=killed["rank"],
        signal=killed["signal"],
        killed_at_step=killed["step"],
        resumed_from=step,
        committed=integrity.committed,
        every=schedule.every,
        # The clock of the kill is the victim's node's: only its own rank can subtract it.
        mttr_seconds=group.gather(mttr)[killed["rank"]],
        imports=FORKED not in os.environ,
        ranks=tuple(ranks),
    )


def _restored(kept: CheckpointStore, step: int) -> State:
    prefix = f"rank-{kept.group.rank}/"
    room = store.own_state(step_folder(kept.root, step))
    state = {name: value for name, value in room.items() if name.startswith(prefix)}
    kept.restore(step, state)
    return {name.removeprefix(prefix): value for name, value in state.items()}


def _integrity(kept: CheckpointStore) -> Integrity:
    """Agree on the step to resume from."""
    group, root = kept.group, kept.root
    here = {step: mark_in(step_folder(root, step)) for step in steps(root)}
    promised: dict[int, Digests | None] = {}
    for theirs in group.gather(here):
        promised |= {step: mark for step, mark in theirs.items() if mark or step not in promised}
    mine = [store.inspect(root, step, group, promised[step]) for step in sorted(promised)]
    parts = [part for theirs in group.gather(mine) for part in theirs]
    committed = {step for step, mark in promised.items() if mark}
    return choose(parts, committed, group.world, str(root))


def choose(parts: Iterable[Part], committed: Collection[int], ranks: int, path: str) -> Integrity:
    """Choose the checkpoint at `path` to resume from, by the findings of all ranks (pure).

    A step counts only if every one of `ranks` ranks has a proven part; `committed` have a commit mark.
    """
    known = list(parts)
    whole: dict[int, set[int]] = {}
    for part in known:
        if part.fault is None:
            whole.setdefault(part.step, set()).add(part.rank)
    complete = [step for step, owners in whole.items() if len(owners) == ranks]
    broken = sorted((p for p in known if p.fault is not None), key=lambda part: (-part.step, part.rank))
    return Integrity(
        name=CHECKPOINTS,
        path=path,
        resumed_from=max(complete, default=None),
        committed=max([*committed, *complete], default=None),
        damaged=tuple(_damage(part) for part in broken if part.readable and part.step in committed),
        unreadable=tuple(_damage(part) for part in broken if not part.readable),
    )


def _damage(part: Part) -> Damage:
    fault = part.fault or ""
    return Damage(rank=part.rank, node=part.node, step=part.step, path=part.path, fault=fault)


def _trained(
    replica: TrainingReplica, schedule: KillSchedule, watch: GradientWatch, after: Callable[[], None]
) -> dict[str, Any]:
    """Train to the end, with a call after each step.

    Return this rank's losses, manifests, and digests of its own gradients, by the step before.
    """
    losses, gradients, manifests = dict[str, str](), dict[str, str](), dict[str, dict[str, str]]()
    while True:
        step = str(replica.step)
        if replica.step % schedule.every == 0:
            manifests[step] = store.manifest(replica.snapshot())
        if replica.step == schedule.steps + NEXT_STEPS:
            return {"losses": losses, "gradients": gradients, "manifests": manifests}
        watch.work = replica.step
        losses[step] = replica.train()
        gradients[step] = watch.own[watch.passes - 1][1]
        replica.group.beat()
        after()


def _compare(
    replica: TrainingReplica, schedule: KillSchedule, scratch: Path, killed_at: float
) -> tuple[RankResume, float]:
    """Continue training, compare with the uninterrupted run; return differences and recovery seconds."""
    moments = list[float]()
    with GradientWatch(replica.model, replica.group) as watch:
        found = _trained(replica, schedule, watch, lambda: moments.append(time.monotonic()))
    twin = json.loads((scratch / f"reference-{replica.group.rank}.json").read_text())
    different = [
        (int(step), name)
        for step, entries in found["manifests"].items()
        for name in store.differences(twin["manifests"][step], entries)
    ]
    odd = [int(step) for step, digest in found["gradients"].items() if digest != twin["gradients"][step]]
    outcome = RankResume(
        rank=replica.group.rank,
        entries=sum(len(twin["manifests"][step]) for step in found["manifests"]),
        different=tuple(f"step {step}: {name}" for step, name in different[:20]),
        differing=len(different),
        state_step=min((step for step, _ in different), default=None),
        gradient_step=min(odd, default=None),
        losses_compared=len(found["losses"]),
        losses_equal=sum(loss == twin["losses"][step] for step, loss in found["losses"].items()),
        torn_offered=(),
        torn_accepted=(),
    )
    return outcome, moments[0] - killed_at


def _kill_record(group: Group, scratch: Path) -> dict[str, Any]:
    """Return the kill recorded by the victim's launcher; a restart without it is an error."""
    path = scratch / "killed.json"
    mine: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    for item in group.gather(mine):
        if item is not None:
            return item
    raise RuntimeError("the ranks were restarted although no rank was killed on purpose")
