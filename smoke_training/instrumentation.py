"""Where the seconds of a training step go, in anybody's own loop, and which rank is slow.

```python
with smoke_training.instrument(model, optimizer, loader, every=50, jsonl="steps.jsonl") as run:
    for batch in run.batches():
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if run.step % 1000 == 0:
            with run.checkpoint():
                save(model, optimizer)
```

A step lasts from asking for one batch to asking for the next. Its seconds are

- `data`: waiting for the loader;
- `compute`: from the model's forward pass to the end of its backward pass, and the optimizer's step;
- `exposed_communication`: from the moment the last gradient is ready to the moment the reduced gradients
  are, which is what `DistributedDataParallel` could not hide behind the backward pass (it includes waiting
  for slower ranks);
- `checkpoint`: inside `run.checkpoint()`;
- `other`: everything else in the loop.

Nothing is added to the step but a handful of clock readings: `benchmarks/instrument_overhead.py` has the
figure. Ranks compare their compute times every `every` steps through the process group's key-value store, in
a thread of its own: no collective, no barrier, nothing that waits on the path of the step. Works without
`torch.distributed` as well. On CUDA the marks are events on the current stream, read one window later
(untested on hardware).
"""

import json
import queue
import statistics
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from smoke_training.runtime.exchange import Peers
from smoke_training.runtime.marks import (
    CHECKPOINT,
    COMPUTE,
    DATA,
    EXPOSED,
    OTHER,
    DeviceMarks,
    HostMarks,
    Pending,
    Step,
)
from smoke_training.statistics.comparison import Comparison

Batch = TypeVar("Batch")
Record = dict[str, object]

HISTORY = 10_000  # steps kept for `Run.history`
PATIENCE_S = 2.0  # that rank 0 waits, off the path of the step, for the figures of slower ranks
FLUSH_S = 10.0  # that leaving the `with` statement may take
PARTS = ("data", "compute", "exposed_communication", "checkpoint", "other")


def instrument(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    loader: Iterable[Batch],
    *,
    every: int = 50,
    jsonl: str | Path | None = None,
    on_record: Callable[[Record], object] | None = None,
) -> "Run[Batch]":
    """Watch a training loop; use the result in a `with` statement around it.

    Every `every` steps rank 0 makes a record (`Run.latest`; a line of the file `jsonl`; an argument for
    `on_record`, which is called in a thread of its own, so that
    `on_record=lambda r: mlflow.log_metrics(metrics(r), step=r["step"])` costs the loop nothing). All ranks
    of a process group must instrument their loops alike. ValueError if `every` is below 1.
    """
    if every < 1:
        raise ValueError(f"every: got {every}; must be at least 1 step")
    return Run(model, optimizer, loader, every=every, jsonl=jsonl, on_record=on_record)


def metrics(record: Mapping[str, Any]) -> dict[str, float]:
    """A record as flat numbers for an experiment tracker; what is unknown is left out.

    Seconds per step by part, `step_seconds`, the shares lost to data and communication, and the largest
    slowdown of any rank.
    """
    found = {f"step/{part}_seconds": value for part, value in record["seconds"].items() if value is not None}
    found["step/lost_to_data"] = record["lost_to_data"]
    if record["lost_to_communication"] is not None:
        found["step/lost_to_communication"] = record["lost_to_communication"]
    if record["straggler"] is not None:
        found["step/straggler_slowdown"] = record["straggler"]["slowdown"]
        found["step/straggler_rank"] = float(record["straggler"]["rank"])
    return found


class Run(Generic[Batch]):
    """One instrumented loop. `step` counts from 1; `history` and `latest` fill as windows are evaluated."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        loader: Iterable[Batch],
        *,
        every: int,
        jsonl: str | Path | None,
        on_record: Callable[[Record], object] | None,
    ) -> None:
        self.step = 0
        self._model, self._optimizer, self._loader, self._every = model, optimizer, loader, every
        parameter = next(model.parameters(), None)
        on_device = parameter is not None and parameter.is_cuda
        self._marks: HostMarks | DeviceMarks = DeviceMarks() if on_device else HostMarks()
        peers = Peers()
        self._waits = isinstance(model, DistributedDataParallel)
        self._bookkeeper = _Bookkeeper(peers, _why_unknown(model, peers.world), jsonl, on_record)
        self._handles: list[RemovableHandle] = []
        self._in_backward = False

    @property
    def history(self) -> list[Step]:
        """The latest steps of this rank (at most 10,000), seconds by part."""
        return list(self._bookkeeper.history)

    @property
    def latest(self) -> Record | None:
        """The latest record; on ranks other than 0 it has their own figures only."""
        return self._bookkeeper.latest

    @property
    def problems(self) -> list[str]:
        """What went wrong with exporting; training is never disturbed by it."""
        return list(self._bookkeeper.problems)

    def __enter__(self) -> Self:
        handles = [
            self._model.register_forward_pre_hook(self._forward_begins),
            self._model.register_forward_hook(self._forward_ends),
        ]
        # A hook on a parameter is put up once; one on the loss would have to be put up in every step, and
        # costs more than all else here together. Two, in case one gets no gradient.
        trained = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        handles += [
            parameter.register_post_accumulate_grad_hook(self._backward_goes_on)  # type: ignore[no-untyped-call]
            for parameter in (*trained[:1], *trained[1:][-1:])
        ]
        if self._optimizer is not None:
            handles.append(self._optimizer.register_step_pre_hook(self._optimizer_begins))
            handles.append(self._optimizer.register_step_post_hook(self._optimizer_ends))
        self._handles = handles
        self._bookkeeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._bookkeeper.hand_over(self.step, self._marks.take())
        self._bookkeeper.stop()

    def batches(self) -> Iterator[Batch]:
        """The loader's batches, once through; time spent waiting for each is `data`."""
        marks = self._marks
        marks.begin()
        marks.enter(DATA)
        source = iter(self._loader)  # which may start workers: part of waiting for the first batch
        while True:
            marks.enter(DATA)
            try:
                batch = next(source)
            except StopIteration:
                return
            marks.enter(OTHER)
            self.step += 1
            try:
                yield batch
            finally:
                # Also when the loop is left by `break`: its last step was a whole one.
                self._end_step()

    def _end_step(self) -> None:
        if not self._handles:  # a loop that was left, cleaned up after the `with` statement
            return
        self._marks.end_step()
        if self.step % self._every == 0:
            self._bookkeeper.hand_over(self.step, self._marks.take())

    @contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Time inside is the step's `checkpoint`."""
        before = self._marks.enter(CHECKPOINT)
        try:
            yield
        finally:
            self._marks.enter(before)

    def _forward_begins(self, _model: nn.Module, _inputs: object) -> None:
        self._marks.enter(COMPUTE)

    def _forward_ends(self, _model: nn.Module, _inputs: object, output: object) -> None:
        self._in_backward = False
        if not any(tensor.requires_grad for tensor in _tensors(output)):
            self._marks.enter(OTHER)  # an evaluation: no backward pass will end it

    def _backward_goes_on(self, _parameter: Tensor) -> None:
        if not self._in_backward:
            self._in_backward = True
            # `probes/numerics.py` says why a callback queued now runs before the wait for the reduction.
            torch.autograd.Variable._execution_engine.queue_callback(self._gradients_ready)

    def _gradients_ready(self) -> None:
        self._marks.enter(EXPOSED if self._waits else OTHER)
        # Callbacks may queue further ones (torch `engine.cpp`, `exec_post_processing`): this one runs last,
        # after the wait.
        torch.autograd.Variable._execution_engine.queue_callback(self._backward_ends)

    def _backward_ends(self) -> None:
        self._in_backward = False
        self._marks.enter(OTHER)

    def _optimizer_begins(self, *_: object) -> None:
        self._marks.enter(COMPUTE)

    def _optimizer_ends(self, *_: object) -> None:
        self._marks.enter(OTHER)


class _Bookkeeper:
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
        self._thread.start()

    def stop(self) -> None:
        """Evaluate what is left; gives up after a while rather than hold up the end of training."""
        self._work.put(None)
        self._thread.join(FLUSH_S)
        if self._thread.is_alive():
            self._complain(f"the last records were not written within {FLUSH_S:.0f} s")

    def hand_over(self, step: int, steps: Pending) -> None:
        self._work.put((step, steps))

    def _serve(self) -> None:
        while (item := self._work.get()) is not None:
            # Whatever breaks here must not reach the training loop; it is told once and kept.
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
        told, missing = self._peers.collect(window, PATIENCE_S, lambda: not self._work.empty())
        if missing:
            late = ", ".join(map(str, missing))
            return {"straggler_reason": f"ranks without figures for this window: {late}", "ranks": told}
        rows = [row for row in told if isinstance(row, dict)]
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


def _why_unknown(model: nn.Module, world: int) -> str | None:
    """Why exposed communication cannot be told from compute in this model; None if it can."""
    if isinstance(model, DistributedDataParallel) or world == 1:
        return None
    from torch.distributed.fsdp import FSDPModule  # noqa: PLC0415 - half a second of import, needed here only

    if isinstance(model, FSDPModule):
        return "sharded parameters are exchanged inside the forward and backward pass: part of compute"
    return "the model is not a DistributedDataParallel: its communication is part of compute or other"


def _tensors(output: object) -> Iterator[Tensor]:
    """Tensors in what a model returned: a tensor, or tuples, lists and mappings of them."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from _tensors(value)
