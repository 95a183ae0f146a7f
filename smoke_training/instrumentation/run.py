"""One instrumented loop: hooks that mark the parts of a step."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from smoke_training.instrumentation.checkpoint_keeper import CheckpointKeeper
from smoke_training.instrumentation.checkpoints import begin
from smoke_training.instrumentation.marks import (
    CHECKPOINT,
    COMPUTE,
    DATA,
    EXPOSED,
    OTHER,
    DeviceMarks,
    HostMarks,
    StepTimes,
)
from smoke_training.instrumentation.retention import Retention, retention
from smoke_training.instrumentation.step_records import Bookkeeper, Record

Batch = TypeVar("Batch")


def metrics(record: Mapping[str, Any]) -> dict[str, float]:
    """A record as flat numbers for an experiment tracker; unknown values are left out.

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


class InstrumentedRun(Generic[Batch]):
    """Watches a training loop; use it in a `with` statement around the loop.

    Every `every` steps rank 0 makes a record (`latest`; a line of the file `jsonl`; an argument for
    `on_record`, which is called in a separate thread, so that
    `on_record=lambda r: mlflow.log_metrics(metrics(r), step=r["step"])` costs the loop nothing). All ranks
    of a process group must instrument their loops alike. ValueError if `every` is below 1, or if the stack's
    policy of checkpoints, which applies where `keep` is not given, cannot be read.

    `step` counts from 1; `history` and `latest` fill as windows are evaluated.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        loader: Iterable[Batch],
        *,
        every: int = 50,
        jsonl: str | Path | None = None,
        on_record: Callable[[Record], object] | None = None,
        keep: Retention | None = None,
    ) -> None:
        if every < 1:
            raise ValueError(f"every: got {every}; must be at least 1 step")
        self.step = 0
        self._model, self._optimizer, self._loader, self._every = model, optimizer, loader, every
        self._bookkeeper = Bookkeeper(model, jsonl, on_record)
        self._keeper = CheckpointKeeper(keep or retention(), self._bookkeeper.complain)
        parameter = next(model.parameters(), None)
        on_device = parameter is not None and parameter.is_cuda
        self._marks: HostMarks | DeviceMarks = DeviceMarks() if on_device else HostMarks()
        self._waits = isinstance(model, DistributedDataParallel)
        self._trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._handles: list[RemovableHandle] = []
        self._in_backward = False

    @property
    def history(self) -> list[StepTimes]:
        """The latest steps of this rank (at most 10,000), seconds by part."""
        return list(self._bookkeeper.history)

    @property
    def latest(self) -> Record | None:
        """The latest record; ranks other than 0 only have their own figures."""
        return self._bookkeeper.latest

    @property
    def problems(self) -> list[str]:
        """Errors of exporting; they never interrupt training."""
        return list(self._bookkeeper.problems)

    def __enter__(self) -> Self:
        self._handles = [
            self._model.register_forward_pre_hook(self._enters(COMPUTE)),
            self._model.register_forward_hook(self._forward_ends),
        ]
        # A hook on a parameter is registered once; one on the loss would be registered in every step, and
        # cost more than everything else here. Two, in case one gets no gradient.
        self._handles += [
            parameter.register_post_accumulate_grad_hook(self._backward_goes_on)  # type: ignore[no-untyped-call]
            for parameter in (*self._trained[:1], *self._trained[1:][-1:])
        ]
        if self._optimizer is not None:
            self._handles.append(self._optimizer.register_step_pre_hook(self._enters(COMPUTE)))
            self._handles.append(self._optimizer.register_step_post_hook(self._enters(OTHER)))
        self._bookkeeper.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._bookkeeper.hand_over(self.step, self._marks.take())
        self._bookkeeper.stop()
        self._keeper.stop(failed=kind is not None)

    def batches(self) -> Iterator[Batch]:
        """The loader's batches, one pass; time spent waiting for each is `data`."""
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
                # Also when the loop is left by `break`: its last step was complete.
                self._end_step()

    def _end_step(self) -> None:
        if not self._handles:  # a loop that was left, cleaned up after the `with` statement
            return
        self._marks.end_step()
        if self.step % self._every == 0:
            self._bookkeeper.hand_over(self.step, self._marks.take())

    @contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Time inside is the step's `checkpoint`, whose files the loop manages; it is announced."""
        with self._timed():
            yield
        self._keeper.said(time.time())

    @contextmanager
    def saving(self, root: str | Path) -> Iterator[Path]:
        """Yield the folder for a checkpoint of this step, below a shared one; its time is `checkpoint`.

        Every rank writes its files there, and leaves when they are written. Rank 0 then reads them back,
        commits them by a mark, announces it, and applies the retention policy, while training continues. A
        checkpoint in which any rank raised is not committed, and stays as it is.
        """
        with self._timed():
            yield begin(Path(root), self.step)
        self._keeper.written(Path(root), self.step)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        before = self._marks.enter(CHECKPOINT)
        try:
            yield
        finally:
            self._marks.enter(before)

    def _enters(self, section: int) -> Callable[..., None]:
        def hook(*_: object) -> None:
            self._marks.enter(section)

        return hook

    def _forward_ends(self, *_: object) -> None:
        self._in_backward = False
        if not (self._trained and torch.is_grad_enabled()):
            self._marks.enter(OTHER)  # an evaluation: no backward pass will end it

    def _backward_goes_on(self, _parameter: Tensor) -> None:
        if not self._in_backward:
            self._in_backward = True
            # `probes/training/numerics.py` explains why a callback queued now runs before the wait.
            torch.autograd.Variable._execution_engine.queue_callback(self._gradients_ready)

    def _gradients_ready(self) -> None:
        self._marks.enter(EXPOSED if self._waits else OTHER)
        # Callbacks may queue further ones (torch `engine.cpp`, `exec_post_processing`): this one runs last,
        # after the wait.
        torch.autograd.Variable._execution_engine.queue_callback(self._backward_ends)

    def _backward_ends(self) -> None:
        self._in_backward = False
        self._marks.enter(OTHER)


instrument = InstrumentedRun
