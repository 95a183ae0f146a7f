"""Durable writes and cold reads of every storage target, on all nodes at once.

One rank per node works, the others wait. A few blocks are overwritten again and again: the first write of a
block is timed apart, because a thin or lazily initialised disk has to find room for it, so that of two
healthy nodes one may look four times slower. Sizes are chosen from a trial write, the same on all nodes,
so that a repetition takes some milliseconds on a fast disk and on a slow one. All nodes start every
repetition together; the peers' times are the yardstick, so a busy moment of a shared service hits all.
"""

import os
import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from smoke_training.evidence import Record
from smoke_training.evidence.storage import Storage
from smoke_training.evidence.training import Rows
from smoke_training.model import Verdict
from smoke_training.plan import StorageTarget
from smoke_training.probes.context import Context
from smoke_training.probes.stopwatch import Series
from smoke_training.probes.storage.disk import CHUNK, BlockFile, Refusal, refusals_of_all, refusing
from smoke_training.runtime import files, heartbeat
from smoke_training.statistics import slowness

T = TypeVar("T")

REGIONS = 4
TRIAL_BYTES = 1 << 20
LARGEST_BLOCK = 64 << 20
FIRST_LOOK, LOOK_EVERY, CAP = 48, 16, 1000
BURSTY_S = 10.0  # at most, where repetitions come in bursts and the answer is still open
CONFIRM_AFTER_S = 1.0  # a slow node gets a second chance after a neighbour's burst may have ended
OPEN_FILES = 128
PREFIX = ".trainstack-smoke-"
CHECKPOINTS = "checkpoints"  # name of the target that checkpoints go to


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Seconds for the repetitions of one target, and how long one of them should take."""

    write_s: float
    read_s: float
    open_s: float
    repetition_s: float


QUICK = Budget(write_s=1.0, read_s=1.6, open_s=0.2, repetition_s=0.005)
FULL = Budget(write_s=4.0, read_s=2.0, open_s=1.0, repetition_s=0.025)


def targets(context: Context) -> tuple[StorageTarget, ...]:
    """The plan's targets, or the node's own scratch folder."""
    return context.plan.storage or (StorageTarget(name="scratch", path=str(context.scratch)),)


def checkpoint_folder(context: Context) -> Path:
    """A folder of this run's own for checkpoints, the same name on all nodes; exchanges with all ranks.

    On the plan's target named "checkpoints"; without one in the node's scratch folder.
    """
    target = next((item for item in context.plan.storage if item.name == CHECKPOINTS), None)
    name = str(context.group.gather(f"{PREFIX}{uuid.uuid4().hex[:12]}")[0])
    return Path(target.path) / name if target else context.scratch / CHECKPOINTS


def measure(context: Context) -> Iterator[Record]:
    """The `storage` evidence of every target, or `storage_error` lines where the system refused."""
    chosen = targets(context)
    for target in chosen:
        if context.group.rank == 0:
            files.sweep(Path(target.path), PREFIX)
        trial = Trial(context, target, 1 / len(chosen))
        try:
            yield from trial.run()
        finally:
            trial.tidy()


@dataclass(frozen=True)
class Operation:
    """What a repetition times, and what it does before the nodes meet."""

    name: str
    first_look: int  # repetitions before the first look
    run: Callable[[int], None]
    prepare: Callable[[], None] = lambda: None


class Trial:
    """One target, on this rank. Every method exchanges alike on all ranks, whatever failed where."""

    def __init__(self, context: Context, target: StorageTarget, share: float) -> None:
        self.sampling, self.group, self.target, self.share = context.sampling, context.group, target, share
        self.budget = FULL if context.full else QUICK
        self.works = self.group.local_rank == 0
        self.working = _working(self.group.nodes())
        name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        self.folder = Path(target.path) / name
        self.file: BlockFile | None = None
        self.refusals: list[Refusal] = []
        self.heart = heartbeat.own()

    def run(self) -> Iterator[Record]:
        """Measure; stops at the first refusal of any node, which becomes the evidence."""
        with refusing(self.refusals, "open", self.folder):
            if self.works:
                self.file = BlockFile(self.folder / "blocks", REGIONS)
        size = self._block_bytes()
        first = self._first_writes(size)
        write, read = Series(), Series()
        write_rows = self._repeat(
            write, self._write(size, first), self.budget.write_s, self._declared_s(size)
        )
        resident = self._resident()
        read_rows = self._repeat(read, self._read(size, first), self.budget.read_s, None)
        opens = self._opens()
        refused = refusals_of_all(self.group, self.refusals, "storage", self.target.name)
        if refused:
            yield from refused
            return
        yield Storage(
            name=self.target.name,
            path=self.target.path,
            nodes=tuple(node for node, _ in self.working),
            write_bytes=size,
            read_bytes=REGIONS * size,
            write=write_rows,
            write_queue=self._queues(write),
            first_write_mb_s=self._of_working(first),
            read=read_rows,
            read_queue=self._queues(read),
            resident_share=self._of_working(resident),
            open=self._of_working(opens),
        )

    def tidy(self) -> None:
        """Remove what this rank made."""
        if self.file is not None:
            self.file.close()
        if self.works:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _declared_s(self, size: int) -> float | None:
        rate = self.target.write_mb_s
        return None if rate is None else size / 1e6 / rate

    def _block_bytes(self) -> int:
        """A power of two that the slowest node writes in about the time of one repetition."""
        seconds = [0.0]
        if self.file is not None:
            with refusing(self.refusals, "write", self.file.path, REGIONS * TRIAL_BYTES):
                for index in range(REGIONS):
                    self.file.write(index, TRIAL_BYTES)
                seconds = [_timed(self._write(TRIAL_BYTES, []).run, index) for index in range(REGIONS)]
        slowest = max(self.group.maxima([statistics.median(seconds)])[0], 1e-6)
        wanted = TRIAL_BYTES * self.budget.repetition_s / slowest
        return max(CHUNK, min(LARGEST_BLOCK, 1 << int(wanted).bit_length() - 1 if wanted >= 1 else CHUNK))

    def _first_writes(self, size: int) -> list[float]:
        """MB/s of the blocks' first write, per rank; 0 where the rank does not work."""
        rate = 0.0
        if self.file is not None and not self.refusals:
            with refusing(self.refusals, "write", self.file.path, REGIONS * size):
                began = time.perf_counter()
                for index in range(REGIONS):
                    self.file.write(index, size)
                    self.heart.beat()
                rate = REGIONS * size / 1e6 / (time.perf_counter() - began)
        return self.group.gather(rate)

    def _write(self, size: int, first: list[float]) -> Operation:
        looks = _first_look(self.budget.write_s * self.share, size, first)
        return Operation("write", looks, lambda index: self._file.write(index, size))

    def _read(self, size: int, first: list[float]) -> Operation:
        """The whole file: reads of single blocks from behind the cache vary twentyfold on shared disks."""
        looks = _first_look(self.budget.read_s * self.share, REGIONS * size, first)
        return Operation("read", looks, lambda _index: self._file.read(0, REGIONS * size), self._forget)

    def _forget(self) -> None:
        self._file.drop_cache()

    @property
    def _file(self) -> BlockFile:
        assert self.file is not None
        return self.file

    def _repeat(
        self, series: Series, operation: Operation, budget_s: float, declared_s: float | None
    ) -> Rows:
        """Repeat together until the comparison is decided or time is up; the working ranks' rows.

        A finding of slowness needs a second window after a pause to stand.
        """
        budget, again, spent = budget_s * self.share, False, 0.0
        while True:
            began = time.monotonic()
            self._window(series, operation, LOOK_EVERY if series.wall else operation.first_look)
            spent += time.monotonic() - began
            rows = self._rows(series.wall)
            status = self.sampling.storage(rows, self._queues(series), declared_s)
            # One clock and one list of refusals for all, so that all stop together.
            late, refused = self.group.maxima([spent, float(bool(self.refusals))])
            if refused or status is Verdict.PASS or len(series.wall) >= CAP:
                return rows
            limit = max(budget, BURSTY_S * self.share) if slowness.bursty(rows) else budget
            if status is Verdict.FAIL and not again:
                again, budget = True, late + budget_s * self.share
                time.sleep(CONFIRM_AFTER_S)
            elif late > limit:
                return rows

    def _window(self, series: Series, operation: Operation, repetitions: int) -> None:
        for index in range(len(series.wall), len(series.wall) + repetitions):
            working = self.file is not None and not self.refusals
            if working:
                operation.prepare()
            self.group.barrier()
            self.heart.beat()
            if not working:
                series.skip()
                continue
            with refusing(self.refusals, operation.name, self._file.path), series.timed():
                operation.run(index)
            if self.refusals:
                series.wall[-1] = 0.0

    def _resident(self) -> list[float | None]:
        """Share of the file that is cached although it was dropped, per rank."""
        share: float | None = None
        if self.file is not None:
            self.file.drop_cache()
            share = self.file.resident_share()
        return self.group.gather(share)

    def _opens(self) -> list[tuple[float, ...]]:
        """Seconds to open each of some small files that exist, per rank; the creation is not timed."""
        seconds: list[float] = []
        if self.works and not self.refusals:
            with refusing(self.refusals, "open", self.folder):
                deadline, made = time.monotonic() + self.budget.open_s * self.share, list[Path]()
                while len(made) < OPEN_FILES and time.monotonic() < deadline:
                    made.append(self.folder / f"small-{len(made)}")
                    made[-1].write_bytes(b"x")
                seconds = [_timed(_open(path), 0) for path in made]
        return self.group.gather(tuple(seconds))

    def _of_working(self, values: Sequence[T]) -> tuple[T, ...]:
        return tuple(values[rank] for _, rank in self.working)

    def _rows(self, values: Sequence[float]) -> Rows:
        return self._of_working(self.group.rows(values))

    def _queues(self, series: Series) -> Rows | None:
        """Of the working ranks, whose kernels alone have to say it."""
        mine = series.queue if self.works else [0.0] * len(series.queue)
        rows = self.group.known_rows(mine)
        return None if rows is None else self._of_working(rows)


def _first_look(budget_s: float, size: int, mb_s: list[float]) -> int:
    """Repetitions before the first look: fewer where the blocks' first write says that they take long."""
    slowest = min((rate for rate in mb_s if rate > 0), default=0.0)
    fitting = int(2 * budget_s * slowest * 1e6 / size) if slowest else FIRST_LOOK
    return max(LOOK_EVERY, min(FIRST_LOOK, fitting))


def _working(nodes: list[int]) -> list[tuple[int, int]]:
    """(node, rank) of the ranks that work, in node order: the first rank of each node."""
    first: dict[int, int] = {}
    for rank, node in enumerate(nodes):
        first.setdefault(node, rank)
    return sorted(first.items())


def _timed(operation: Callable[[int], None], index: int) -> float:
    began = time.perf_counter()
    operation(index)
    return time.perf_counter() - began


def _open(path: Path) -> Callable[[int], None]:
    def once(_index: int) -> None:
        os.close(os.open(path, os.O_RDONLY))

    return once
