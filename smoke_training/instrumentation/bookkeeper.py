"""Windows of steps into records: means by part, and how the ranks compare."""

import json
import queue
import statistics
import threading
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from smoke_training.instrumentation.exchange import Peers
from smoke_training.instrumentation.marks import Pending, Step
from smoke_training.statistics.peers import Comparison

Record = dict[str, object]

HISTORY = 10_000  # steps kept for `Run.history`
PATIENCE_S = 2.0  # that rank 0 waits, off the path of the step, for the figures of slower ranks
FLUSH_S = 10.0  # that leaving the `with` statement may take
PARTS = ("data", "compute", "exposed_communication", "checkpoint", "other")


class Bookkeeper:
    """Evaluates windows of steps in a thread of its own."""

    def __init__(
        self,
        peers: Peers,
        unknown: str | None,
        jsonl: str | Path | None,
        on_record: Callable[[Record], object] | None,
    ) -> None:
        self.history: deque[Step] = deque(maxlen=HISTORY)
        self.latest: Record | None = None
        self.problems: list[str] = []
        self._peers, self._unknown, self._on_record = peers, unknown, on_record
        self._path = Path(jsonl) if jsonl is not None and peers.rank == 0 else None
        self._comparison = Comparison(peers.world) if peers.world > 1 else None
        self._window = 0
        self._work: queue.SimpleQueue[tuple[int, Pending] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="smoke-training-instrument", daemon=True)

    def start(self) -> None:
        """Begin to evaluate."""
        self._thread.start()

    def stop(self) -> None:
        """Evaluate what is left; gives up after a while rather than hold up the end of training."""
        self._work.put(None)
        self._thread.join(FLUSH_S)
        if self._thread.is_alive():
            self._complain(f"the last records were not written within {FLUSH_S:.0f} s")

    def hand_over(self, step: int, steps: Pending) -> None:
        """Take the steps of a window that ends at `step`."""
        self._work.put((step, steps))

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            # Whatever breaks here must not reach the training loop; it is warned of once and kept.
            try:
                self._evaluate(*item)
            except Exception as error:
                self._complain(f"{type(error).__name__}: {error}")

    def _evaluate(self, step: int, pending: Pending) -> None:
        steps = pending.steps()
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

    def _compared(self, window: int, comparison: Comparison) -> Record:
        figures, missing = self._peers.collect(window, PATIENCE_S, lambda: not self._work.empty())
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

    def _complain(self, text: str) -> None:
        if not self.problems:
            warnings.warn(f"step instrumentation: {text}", RuntimeWarning, stacklevel=2)
        self.problems.append(text)


def summary(steps: list[Step], unknown: str | None) -> Record:
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
    """Why exposed communication cannot be separated from compute in this model; None if it can."""
    if isinstance(model, DistributedDataParallel) or world == 1:
        return None
    from torch.distributed.fsdp import FSDPModule  # noqa: PLC0415 - half a second of import, needed here only

    if isinstance(model, FSDPModule):
        return "sharded parameters are exchanged inside the forward and backward pass: part of compute"
    return "the model is not a DistributedDataParallel: its communication is part of compute or other"
