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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from smoke_training.model import Verdict
from smoke_training.plan import StorageTarget
from smoke_training.probes.context import Context, Line
from smoke_training.probes.storage.disk import CHUNK, BlockFile, Refusal, refusing
from smoke_training.runtime import files, heartbeat, host
from smoke_training.statistics import slowness

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
    name = str(context.gang.gather(f"{PREFIX}{uuid.uuid4().hex[:12]}")[0])
    return Path(target.path) / name if target else context.scratch / CHECKPOINTS


def measure(context: Context) -> Iterator[Line]:
    """The `storage` evidence of every target, or `storage_error` lines where the system refused."""
    chosen = targets(context)
    for target in chosen:
        if context.gang.rank == 0:
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


@dataclass
class Series:
    """Seconds per repetition of this rank, and how long of that it waited for a CPU."""

    wall: list[float] = field(default_factory=list)
    queue: list[float | None] = field(default_factory=list)


class Trial:
    """One target, on this rank. Every method exchanges alike on all ranks, whatever failed where."""

    def __init__(self, context: Context, target: StorageTarget, share: float) -> None:
        self.gang, self.target, self.share = context.gang, target, share
        self.budget = FULL if context.full else QUICK
        self.works = self.gang.local_rank == 0
        self.working = _working([int(str(node)) for node in self.gang.gather(self.gang.node)])
        name = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        self.folder = Path(target.path) / name
        self.file: BlockFile | None = None
        self.refusals: list[Refusal] = []
        self.clock = host.QueueClock()
        self.heart = heartbeat.own()

    def run(self) -> Iterator[Line]:
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
        refused = [line for lines in self.gang.gather(self._refusal_lines()) for line in _list(lines)]
        if refused:
            yield from refused
            return
        yield {
            "kind": "storage",
            "name": self.target.name,
            "path": self.target.path,
            "nodes": [node for node, _ in self.working],
            "write_bytes": size,
            "read_bytes": REGIONS * size,
            "write": write_rows,
            "write_queue": self._queues(write),
            "first_write_mb_s": [first[rank] for _, rank in self.working],
            "read": read_rows,
            "read_queue": self._queues(read),
            "resident_share": [resident[rank] for _, rank in self.working],
            "open": [opens[rank] for _, rank in self.working],
        }

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
        slowest = max(self.gang.maxima([statistics.median(seconds)])[0], 1e-6)
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
        return [row[0] for row in self.gang.rows([rate])]

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
    ) -> list[list[float]]:
        """Repeat together until the comparison is decided or time is up; the working ranks' rows.

        A finding of slowness needs a second window after a pause to stand.
        """
        budget, again, spent = budget_s * self.share, False, 0.0
        while True:
            began = time.monotonic()
            self._window(series, operation, LOOK_EVERY if series.wall else operation.first_look)
            spent += time.monotonic() - began
            rows = self._rows(series.wall)
            status = self._look(rows, series, declared_s)
            # One clock and one list of refusals for all, so that all stop together.
            late, refused = self.gang.maxima([spent, float(bool(self.refusals))])
            if refused or status is Verdict.PASS or len(series.wall) >= CAP:
                return rows
            limit = max(budget, BURSTY_S * self.share) if slowness.bursty(rows) else budget
            if status is Verdict.FAIL and not again:
                again, budget = True, late + budget_s * self.share
                time.sleep(CONFIRM_AFTER_S)
            elif late > limit:
                return rows

    def _window(self, series: Series, operation: Operation, repetitions: int) -> None:
        for _ in range(repetitions):
            working = self.file is not None and not self.refusals
            if working:
                operation.prepare()
            self.gang.barrier()
            self.heart.beat()
            waited, seconds = self.clock.waited(), 0.0
            if working:
                with refusing(self.refusals, operation.name, self._file.path):
                    seconds = _timed(operation.run, len(series.wall))
            after = self.clock.waited()
            series.wall.append(seconds)
            series.queue.append(None if waited is None or after is None else after - waited)

    def _look(self, rows: list[list[float]], series: Series, declared_s: float | None) -> Verdict:
        """What the judge would say now; PASS where there is nothing to compare with."""
        if any(value <= 0 for row in rows for value in row):
            return Verdict.INCONCLUSIVE
        queues = self._queues(series)
        times, nodes = slowness.without_queue(rows, queues), range(len(rows))
        found = list(slowness.among_peers(nodes, times)) if len(rows) > 1 else []
        if declared_s is not None:
            found += slowness.against_declared(nodes, times, declared_s)
        return slowness.combined(found) if found else Verdict.PASS

    def _resident(self) -> list[float | None]:
        """Share of the file that is cached although it was dropped, per rank."""
        share: float | None = None
        if self.file is not None:
            self.file.drop_cache()
            share = self.file.resident_share()
        rows = self.gang.rows([-1.0 if share is None else share])
        return [None if row[0] < 0 else row[0] for row in rows]

    def _opens(self) -> list[list[float]]:
        """Seconds to open each of some small files that exist, per rank; the creation is not timed."""
        seconds: list[float] = []
        if self.works and not self.refusals:
            with refusing(self.refusals, "open", self.folder):
                deadline, made = time.monotonic() + self.budget.open_s * self.share, list[Path]()
                while len(made) < OPEN_FILES and time.monotonic() < deadline:
                    made.append(self.folder / f"small-{len(made)}")
                    made[-1].write_bytes(b"x")
                seconds = [_timed(_open(path), 0) for path in made]
        return [_floats(item) for item in self.gang.gather(seconds)]

    def _rows(self, values: list[float]) -> list[list[float]]:
        rows = self.gang.rows(values)
        return [rows[rank] for _, rank in self.working]

    def _queues(self, series: Series) -> list[list[float]] | None:
        rows = self._rows([-1.0 if value is None else value for value in series.queue])
        return None if any(value < 0 for row in rows for value in row) else rows

    def _refusal_lines(self) -> list[Line]:
        where = ("storage", self.target.name, self.gang.rank, self.gang.node)
        return [item.line(*where) for item in self.refusals[:1]]


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


def _list(item: object) -> list[Line]:
    return item if isinstance(item, list) else []


def _floats(item: object) -> list[float]:
    return [float(value) for value in item] if isinstance(item, list) else []
