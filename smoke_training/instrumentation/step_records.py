"""Evaluate windows of steps into records: means by part, and a comparison of the ranks."""

import itertools
import json
import queue
import statistics
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import HashStore, PrefixStore, Store
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel

from smoke_training.instrumentation.marks import Pending, StepTimes
from smoke_training.statistics.peers import PeerComparison

Record = dict[str, object]

HISTORY = 10_000  # steps kept for `Run.history`
PATIENCE_S = 2.0  # time that rank 0 waits, in this thread, for the figures of slower ranks
FLUSH_S = 10.0  # limit for leaving the `with` statement
SLOTS = 4  # windows of one rank that the store keeps: its size does not grow with the run
POLL_S = 0.2
PARTS = ("data", "compute", "exposed_communication", "checkpoint", "other")
_runs = itertools.count()


class Bookkeeper(threading.Thread):
    """Evaluates windows of steps in a thread of its own."""

    def __init__(
        self, model: nn.Module, jsonl: str | Path | None, on_record: Callable[[Record], object] | None
    ) -> None:
        super().__init__(name="smoke-training-instrument", daemon=True)
        self.history: deque[StepTimes] = deque(maxlen=HISTORY)
        self.latest: Record | None = None
        self.problems: list[str] = []
        self._peers = peers = Peers()
        self._on_record = on_record
        self._unknown = why_unknown(model, peers.world)
        self._path = Path(jsonl) if jsonl is not None and peers.rank == 0 else None
        self._comparison = PeerComparison(peers.world) if peers.world > 1 else None
        self._window = 0
        self._work: queue.SimpleQueue[tuple[int, Pending] | None] = queue.SimpleQueue()

    def stop(self) -> None:
        """Evaluate the remaining windows; gives up after FLUSH_S, so that training can end."""
        self._work.put(None)
        self.join(FLUSH_S)
        if self.is_alive():
            self.complain(f"the last records were not written within {FLUSH_S:.0f} s")

    def hand_over(self, step: int, steps: Pending) -> None:
        """Queue the steps of a window that ends at `step`."""
        self._work.put((step, steps))

    def run(self) -> None:
        """Evaluate windows until `stop`."""
        while (item := self._work.get()) is not None:
            # An error here must not reach the training loop; it is recorded, with one warning.
            try:
                self._evaluate(*item)
            except Exception as error:
                self.complain(f"{type(error).__name__}: {error}")

    def _evaluate(self, step: int, pending: Pending) -> None:
        steps = pending()
        if not steps:
            return
        self.history.extend(steps)
        window, self._window = self._window, self._window + 1
        own = summary(steps, self._unknown)
        record: Record = {"step": step, "rank": self._peers.rank, "world": self._peers.world, **own}
        record |= {"straggler": None, "straggler_reason": "one rank has no peers", "ranks": None}
        if self._comparison is not None:
            self._peers.publish(window, own)
            if self._peers.rank == 0:
                record |= self._compared(window, self._comparison)
            else:
                record["straggler_reason"] = "rank 0 has the comparison"
        self.latest = record
        if self._peers.rank == 0:
            self._export(record)

    def _compared(self, window: int, comparison: PeerComparison) -> Record:
        figures, missing = self._peers.collect(window, lambda: not self._work.empty())
        if missing:
            late = ", ".join(map(str, missing))
            return {"straggler_reason": f"ranks without figures for this window: {late}", "ranks": figures}
        rows = [row for row in figures if isinstance(row, dict)]
        comparison.add([float(row["median_compute_s"]) for row in rows])
        standings = comparison.standings()
        worst = max(standings, key=lambda standing: standing.slowdown)
        scores = [asdict(standing) for standing in standings]
        return {
            "straggler": scores[worst.rank],
            "straggler_reason": None,
            "ranks": [{**row, **score} for row, score in zip(rows, scores, strict=True)],
        }

    def _export(self, record: Record) -> None:
        if self._path is not None:
            with self._path.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
        if self._on_record is not None:
            self._on_record(record)

    def complain(self, text: str) -> None:
        """Record a problem; warn of the first one."""
        if not self.problems:
            warnings.warn(f"step instrumentation: {text}", RuntimeWarning, stacklevel=2)
        self.problems.append(text)


def summary(steps: list[StepTimes], unknown: str | None) -> Record:
    """Mean seconds per step by part, medians, shares lost; `unknown` is why exposed communication is null."""
    means = [statistics.fmean(column) for column in zip(*steps, strict=True)]
    total = means[-1]
    seconds: dict[str, float | None] = dict(zip(PARTS, means, strict=False))
    if unknown is not None:
        seconds["exposed_communication"] = None
    exposed = seconds["exposed_communication"]
    return {
        "steps": len(steps),
        "seconds": {**seconds, "total": total},
        "exposed_communication_reason": unknown,
        "median_step_s": statistics.median(step.total for step in steps),
        "median_compute_s": statistics.median(step.compute for step in steps),
        "lost_to_data": means[0] / total,
        "lost_to_communication": None if exposed is None else exposed / total,
    }


def why_unknown(model: nn.Module, world: int) -> str | None:
    """Return why exposed communication cannot be separated from compute in this model; None if it can."""
    if isinstance(model, DistributedDataParallel) or world == 1:
        return None
    from torch.distributed.fsdp import FSDPModule  # noqa: PLC0415 - half a second of import, needed here only

    if isinstance(model, FSDPModule):
        return "sharded parameters are exchanged inside the forward and backward pass: part of compute"
    return "the model is not a DistributedDataParallel: its communication is part of compute or other"


class Peers:
    """The other ranks of the default process group, or none; figures go through its key-value store.

    Every rank makes its objects in the same order, so that they use the same prefix. Only rank 0
    reads: one reader costs the store as much as all writers together.
    """

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.world = dist.get_world_size() if joined else 1
        self._store: Store = HashStore()
        if self.world > 1:
            prefix = f"smoke_training.instrument/{next(_runs)}"
            # torch has no public name for the store of the default group; `torch.distributed.elastic` and
            # `new_group` use this one.
            self._store = PrefixStore(prefix, distributed_c10d._get_default_store())

    def publish(self, window: int, figures: object) -> None:
        """Publish a window of steps to the other ranks; `figures` must be ready for JSON."""
        text = json.dumps({"window": window, "figures": figures})
        self._store.set(f"{self.rank}/{window % SLOTS}", text)

    def say(self, word: str) -> None:
        """Publish that this rank has reached an event."""
        self._store.set(f"{self.rank}/{word}", "")

    def silent(self, word: str) -> list[int]:
        """Return the ranks that have not published an event."""
        return [rank for rank in range(self.world) if not self._store.check([f"{rank}/{word}"])]

    def collect(self, window: int, hurried: Callable[[], bool]) -> tuple[list[object], list[int]]:
        """Return the figures of all ranks for a window, and the ranks whose figures are late."""
        deadline = time.monotonic() + PATIENCE_S
        found: dict[int, object] = {}
        while True:
            for rank in set(range(self.world)) - found.keys():
                sent = self._read(rank, window)
                if sent is not None:
                    found[rank] = sent
            missing = [rank for rank in range(self.world) if rank not in found]
            if not missing or time.monotonic() > deadline or hurried():
                return [found.get(rank) for rank in range(self.world)], missing
            time.sleep(POLL_S)

    def _read(self, rank: int, window: int) -> object | None:
        key = f"{rank}/{window % SLOTS}"
        if not self._store.check([key]):
            return None
        sent = json.loads(self._store.get(key))
        return sent["figures"] if sent["window"] == window else None
