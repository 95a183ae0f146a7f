"""Durable writes and cold reads of every storage target, on all nodes at once.

One rank per node works, the others wait. A few blocks are overwritten repeatedly: the first write of a
block is timed separately, because a thin or lazily initialised disk has to allocate it (four times slower).
Sizes are chosen from a trial write, the same on all nodes, so that a repetition takes some milliseconds. All
nodes start every repetition together, so a busy moment of a shared service affects the peers as well.
"""

import contextlib
import os
import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from smoke_training import files
from smoke_training.evidence import Record
from smoke_training.evidence.storage import StorageTimes
from smoke_training.evidence.training import Rows
from smoke_training.model import Verdict
from smoke_training.plan import StorageTarget
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import Series, complete
from smoke_training.probes.storage.disk import CHUNK, BlockFile, Refusals, forgotten, free_bytes
from smoke_training.statistics import slowness

T = TypeVar("T")

REGIONS = 4
TRIAL_BYTES = 1 << 20
LARGEST_BLOCK = 64 << 20
FIRST_LOOK, LOOK_EVERY, CAP = 48, 16, 1000
BURSTY_S = 10.0  # limit for bursty repetitions without a decision
CONFIRM_AFTER_S = 1.0  # a slow node is measured again after a pause, in case of a neighbour's burst
OPEN_FILES = 128
STREAM_BYTES, STREAM_S = (32 << 20, 1.0)  # one long write: as much as fits into the time
PREFIX = ".trainstack-smoke-"
CHECKPOINTS = "checkpoints"  # name of the target that checkpoints go to


@dataclass(frozen=True, kw_only=True)
class TimeBudget:
    """Seconds for the repetitions of one target, and the target duration of one."""

    write_s: float
    read_s: float
    open_s: float
    repetition_s: float


QUICK = TimeBudget(write_s=1.0, read_s=1.6, open_s=0.2, repetition_s=0.005)
FULL = TimeBudget(write_s=4.0, read_s=2.0, open_s=1.0, repetition_s=0.025)


def targets(context: ProbeContext) -> tuple[StorageTarget, ...]:
    """Return the plan's targets, or the node's own scratch folder."""
    return context.plan.storage or (StorageTarget(name="scratch", path=str(context.scratch)),)


def fresh_name() -> str:
    """Return the name for a folder of this rank on a target; `files.sweep` removes a killed run's folder."""
    return f"{PREFIX}{uuid.uuid4().hex[:12]}"


def checkpoint_folder(context: ProbeContext) -> Path:
    """Return a new folder for checkpoints, the same name on all nodes; exchanges with all ranks.

    On the plan's target named "checkpoints"; without one in the node's scratch folder.
    """
    target = next((item for item in context.plan.storage if item.name == CHECKPOINTS), None)
    name = context.group.gather(fresh_name())[0]
    return Path(target.path) / name if target else context.scratch / CHECKPOINTS


def remove_checkpoints(group: Group, folder: Path) -> None:
    """Remove a folder of checkpoints when all ranks are done with it."""
    with contextlib.suppress(RuntimeError):  # a peer may be gone
        group.barrier()
    if group.local_rank == 0:
        shutil.rmtree(folder, ignore_errors=True)


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `storage` evidence of every target, or `storage_error` lines where the system refused."""
    chosen = targets(context)
    for target in chosen:
        if context.group.rank == 0:
            files.sweep(Path(target.path), PREFIX)
        trial = StorageTrial(context, target, 1 / len(chosen))
        try:
            yield from trial.run()
        finally:
            trial.tidy()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The timed operation of a repetition, its preparation, and the time limit of all."""

    name: str
    size: int  # bytes
    budget_s: float
    run: Callable[[BlockFile, int], None]
    prepare: Callable[[BlockFile], None] = lambda _file: None
    declared_s: float | None = None  # declared seconds of one


class StorageTrial:
    """One target, on this rank. Every method runs the same exchanges on all ranks, whatever failed where."""

    def __init__(self, context: ProbeContext, target: StorageTarget, share: float) -> None:
        self.sampling, self.group, self.target, self.share = context.sampling, context.group, target, share
        self.budget = FULL if context.full else QUICK
        self.works = self.group.local_rank == 0
        ranks = enumerate(self.group.gather((self.group.node, self.works)))
        self.working = sorted((node, rank) for rank, (node, works) in ranks if works)
        self.folder = Path(target.path) / fresh_name()
        self.file: BlockFile | None = None
        self.refusals = Refusals(self.group, "storage", target.name)

    def run(self) -> Iterator[Record]:
        """Measure; stops at the first refusal of any node, which becomes the evidence."""
        with self.refusals.collected("open", self.folder):
            if self.works:
                self.file = BlockFile(self.folder / "blocks", REGIONS)
        size, rate = self._block_bytes(), self.target.write_mb_s
        first = self._first_writes(size)
        write = Operation(
            name="write",
            size=size,
            budget_s=self.budget.write_s * self.share,
            run=lambda file, index: file.write(index, size),
            declared_s=None if rate is None else size / 1e6 / rate,
        )
        # The whole file: uncached reads of single blocks vary twentyfold on shared disks.
        read = Operation(
            name="read",
            size=REGIONS * size,
            budget_s=self.budget.read_s * self.share,
            run=lambda file, _index: file.read(0, REGIONS * size),
            prepare=BlockFile.drop_cache,
        )
        write_rows, write_queue = self._repeat(write, first)
        streams = self._streams(REGIONS * size, first)
        resident = self._resident()
        read_rows, read_queue = self._repeat(read, first)
        opens = self._opens()
        refused = self.refusals.of_all()
        if refused:
            yield from refused
            return
        yield StorageTimes(
            name=self.target.name,
            path=self.target.path,
            nodes=tuple(node for node, _ in self.working),
            write_bytes=size,
            read_bytes=REGIONS * size,
            write=write_rows,
            write_queue=write_queue,
            first_write_mb_s=first,
            read=read_rows,
            read_queue=read_queue,
            resident_share=resident,
            open=opens,
            stream_mb_s=streams,
        )

    def tidy(self) -> None:
        """Remove this rank's files."""
        if self.file is not None:
            self.file.close()
        if self.works:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _able(self) -> BlockFile | None:
        """The file of a working rank without a refusal so far."""
        return None if self.refusals.own else self.file

    def _block_bytes(self) -> int:
        """Return a power of two that the slowest node writes in about one repetition's time."""
        trial = Series()
        if file := self._able:
            with self.refusals.collected("write", file.path, REGIONS * TRIAL_BYTES):
                for index in range(2 * REGIONS):
                    with trial.timed():
                        file.write(index, TRIAL_BYTES)
        seconds = statistics.median(trial.wall[REGIONS:] or [0.0])  # without the first write of every block
        wanted = TRIAL_BYTES * self.budget.repetition_s / max(self.group.maxima([seconds])[0], 1e-6)
        return max(CHUNK, min(LARGEST_BLOCK, 1 << int(wanted).bit_length() - 1 if wanted >= 1 else CHUNK))

    def _first_writes(self, size: int) -> tuple[float, ...]:
        """Return the MB/s of the blocks' first write, per working rank; 0 where refused."""
        rate = 0.0
        if file := self._able:
            with self.refusals.collected("write", file.path, REGIONS * size):
                began = time.perf_counter()
                for index in range(REGIONS):
                    file.write(index, size)
                    self.group.beat()
                rate = REGIONS * size / 1e6 / (time.perf_counter() - began)
        return self._of_working(rate)

    def _streams(self, least: int, first: Sequence[float]) -> tuple[float, ...]:
        """Return the MB/s of one long write, per working rank; at least `least` bytes, already allocated.

        `first` is the MB/s of the blocks' first write.
        """
        free = self.group.gather(free_bytes(self.folder) or 0 if self.works else None)
        room = min(found for found in free if found is not None) // 4
        size = max(least, min(STREAM_BYTES, int(min(first) * 1e6 * STREAM_S), room)) // CHUNK * CHUNK
        seconds = 0.0
        if self._able:
            path = self.folder / "stream"
            with self.refusals.collected("write", path, size), contextlib.closing(BlockFile(path, 1)) as file:
                began = time.perf_counter()
                file.write(0, size)
                seconds = time.perf_counter() - began
        self.group.beat()
        return self._of_working(size / 1e6 / seconds if seconds else 0.0)

    def _repeat(self, operation: Operation, first: Sequence[float]) -> tuple[Rows, Rows | None]:
        """Repeat together until the comparison is decided or time is up: seconds, and waiting for a CPU.

        Rows are the working ranks. `first` is the MB/s of the blocks'
        first write. A finding of slowness needs a second window after a pause to stand.
        """
        series, budget, again, spent = Series(), operation.budget_s, False, 0.0
        while True:
            began = time.monotonic()
            self._window(series, operation, LOOK_EVERY if series.wall else _first_look(operation, first))
            spent += time.monotonic() - began
            rows = self._of_working(tuple(series.wall))
            queues = complete([complete(row) for row in self._of_working(series.queue)])
            status = self.sampling.storage(rows, queues, operation.declared_s)
            # One clock and one list of refusals for all, so that all stop together.
            late, refused = self.group.maxima([spent, float(bool(self.refusals.own))])
            if refused or status is Verdict.PASS or len(series.wall) >= CAP:
                return rows, queues
            limit = max(budget, BURSTY_S * self.share) if slowness.bursty(rows) else budget
            if status is Verdict.FAIL and not again:
                again, budget = True, late + operation.budget_s
                time.sleep(CONFIRM_AFTER_S)
            elif late > limit:
                return rows, queues

    def _window(self, series: Series, operation: Operation, repetitions: int) -> None:
        for index in range(len(series.wall), len(series.wall) + repetitions):
            file = self._able
            if file is not None:
                operation.prepare(file)
            self.group.barrier()
            if file is None:
                series.skip()
                continue
            with self.refusals.collected(operation.name, file.path), series.timed():
                operation.run(file, index)
            if self.refusals.own:
                series.wall[-1] = 0.0

    def _resident(self) -> tuple[float | None, ...]:
        """Return the share of the file cached in spite of the drop, per working rank."""
        shares = None
        if file := self._able:
            with self.refusals.collected("read", file.path):
                shares = forgotten([file.path])
        return self._of_working(shares[0] if shares else None)

    def _opens(self) -> tuple[tuple[float, ...], ...]:
        """Return the seconds to open each of some existing small files, per working rank."""
        opened = Series()
        if self._able:
            with self.refusals.collected("open", self.folder):
                deadline, made = time.monotonic() + self.budget.open_s * self.share, list[Path]()
                while len(made) < OPEN_FILES and time.monotonic() < deadline:
                    made.append(self.folder / f"small-{len(made)}")
                    made[-1].write_bytes(b"x")
                for path in made:
                    with opened.timed():
                        os.close(os.open(path, os.O_RDONLY))
        return self._of_working(tuple(opened.wall))

    def _of_working(self, item: T) -> tuple[T, ...]:
        items = self.group.gather(item)
        return tuple(items[rank] for _, rank in self.working)


def _first_look(operation: Operation, mb_s: Sequence[float]) -> int:
    """Return the repetitions before the first look: fewer where the blocks' first write was slow."""
    slowest = min((rate for rate in mb_s if rate > 0), default=0.0)
    fitting = int(2 * operation.budget_s * slowest * 1e6 / operation.size) if slowest else FIRST_LOOK
    return max(LOOK_EVERY, min(FIRST_LOOK, fitting))
