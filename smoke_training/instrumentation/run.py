"""One instrumented loop: hooks that mark the parts of a step."""

import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from smoke_training.instrumentation.checkpoint_keeper import CheckpointKeeper
from smoke_training.instrumentation.checkpoints import begin
from smoke_training.instrumentation.hang import HangWatch
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
from smoke_training.instrumentation.step_records import Bookkeeper, Record, Window
from smoke_training.instrumentation.waits import Waits
from smoke_training.runtime.flight_recorder import OLDER, named

Batch = TypeVar("Batch")


def metrics(record: Mapping[str, Any]) -> dict[str, float]:
    """A record as flat numbers for an experiment tracker; unknown values are left out."""
    found = {f"step/{part}_seconds": value for part, value in record["seconds"].items() if value is not None}
    found["step/lost_to_data"] = record["lost_to_data"]
    if record["lost_to_communication"] is not None:
        found["step/lost_to_communication"] = record["lost_to_communication"]
    for name in ("tokens_per_second", "tokens_per_second_all", "mfu", "ettr", "slowdown_to_own_history"):
        if record.get(name) is not None:
            found[f"step/{name}"] = record[name]
    found |= {
        f"gpu/{name}": value for name, value in (record["gpu"] or {}).items() if isinstance(value, float)
    }
    if record["straggler"] is not None:
        found["step/straggler_slowdown"] = record["straggler"]["slowdown"]
        found["step/straggler_rank"] = float(record["straggler"]["rank"])
    return found


class InstrumentedRun(Generic[Batch]):
    """Watches a training loop; use it in a `with` statement around the loop.

    Every `every` steps rank 0 makes a record (`latest`; a line of the file `jsonl`; an argument for
    `on_record`, which is called in a separate thread, as `lambda r: mlflow.log_metrics(metrics(r),
    step=r["step"])`). All ranks of a process group must instrument their loops alike. ValueError for a wrong
    `every` or `hang_s`, or if the stack's policy of checkpoints (where `keep` is not given) cannot be read. A
    loop outside of the `with` statement, or without `batches()`, is not recorded: reported once, on rank 0.

    `model`: one module, or several (a generator and its critic). `tokens` counts those of a batch that this
    rank alone trains on (0 where another rank has the same batch); without it, an integer tensor of two
    dimensions (alone, first in a tuple, or `input_ids`) is counted, padding included. A step is a batch of
    the loader, so accumulated gradients change no rate. `flops_per_token` (forward and backward,
    `smoke_training/formulae/mfu.py`) and `peak_tflops` of one device give `mfu`. A loop of several ranks that
    makes no step for `hang_s` (None: never looked at) is reported once, in `problems`, a warning and `jsonl`:
    with the collective that a rank did not enter. `step` counts from 1; `history` grows by windows.
    """

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        optimizer: torch.optim.Optimizer | None,
        loader: Iterable[Batch],
        *,
        every: int = 50,
        jsonl: str | Path | None = None,
        on_record: Callable[[Record], object] | None = None,
        keep: Retention | None = None,
        tokens: Callable[[Batch], int] | None = None,
        flops_per_token: float | None = None,
        peak_tflops: float | None = None,
        hang_s: float | None = 300.0,
    ) -> None:
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise ValueError(f"every: got {every!r}; must be a whole number of steps, at least 1")
        number = isinstance(hang_s, int | float) and not isinstance(hang_s, bool)
        if hang_s is not None and not (number and hang_s > 0):
            raise ValueError(f"hang_s: got {hang_s!r}; must be seconds above 0, or None to look at nothing")
        self.step, self._losses = 0, list[tuple[int, Tensor]]()
        self._models = [model] if isinstance(model, nn.Module) else list(model)
        self._optimizer, self._loader, self._every = optimizer, loader, every
        if not os.environ.keys() & {*OLDER, *OLDER.values()}:  # for a process group that is made later
            os.environ.update(named({"TORCH_FR_BUFFER_SIZE": "2000"}))
        self._bookkeeper = Bookkeeper(self._models, jsonl, on_record, (flops_per_token, peak_tflops))
        self._keeper = CheckpointKeeper(keep or retention(), self._bookkeeper.complain)
        parameters = [parameter for module in self._models for parameter in module.parameters()]
        on_device = bool(parameters) and parameters[0].is_cuda
        self._marks: HostMarks | DeviceMarks = DeviceMarks() if on_device else HostMarks()
        self._waits, self._counted = Waits(self._marks), 0
        self._tokens: Callable[[Batch], int] | None = tokens or _tokens
        peers, report = self._bookkeeper.peers, self._bookkeeper.hung
        self._hang = HangWatch(hang_s or math.inf, peers, lambda: self.step, report)
        self._overlaps = any(isinstance(module, DistributedDataParallel) for module in self._models)
        self._trained = [p for p in parameters if p.requires_grad and p.is_leaf]
        self._handles: list[RemovableHandle] = []
        self._compiled: list[nn.Module] = []
        self._in_backward, self._active, self._pid = False, False, os.getpid()
        self._began = self._notified = False
        hook, plain = self._expects_batches(), [m for m in self._models if m._compiled_call_impl is None]
        self._expecting = [module.register_forward_pre_hook(hook) for module in plain[:1]]

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
        for module in self._models:
            if module._compiled_call_impl is not None:
                # `module.compile()` compiles hooks as well, and a full graph must not read a clock.
                self._compiled.append(module)
                module._compiled_call_impl = self._around(module._compiled_call_impl)
            else:
                self._handles.append(module.register_forward_pre_hook(self._enters(COMPUTE)))
                self._handles.append(module.register_forward_hook(self._forward_ends))
        # A hook on a parameter is registered once; one on the loss would be registered in every step, and
        # cost more than everything else here. Two, in case one gets no gradient.
        self._handles += [
            parameter.register_post_accumulate_grad_hook(self._backward_goes_on)  # type: ignore[no-untyped-call]
            for parameter in (*self._trained[:1], *self._trained[1:][-1:])
        ]
        if isinstance(self._optimizer, torch.optim.Optimizer):  # others have no hooks
            self._handles.append(self._optimizer.register_step_pre_hook(self._enters(COMPUTE)))
            self._handles.append(self._optimizer.register_step_post_hook(self._enters(OTHER)))
        self._waits.start()
        self._bookkeeper.start()
        self._active = True
        if self._hang.watches:
            self._hang.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._began:
            self._report_unused()
        self._active = False
        for handle in (*self._handles, *self._expecting):
            handle.remove()
        for module in self._compiled:
            module._compiled_call_impl = module._compiled_call_impl.__wrapped__  # type: ignore[union-attr]
        self._handles, self._compiled = [], []
        self._waits.stop()
        if os.getpid() != self._pid:  # a forked process that leaves has none of these threads
            return
        self._hang.stop()
        self._hand_over()
        self._bookkeeper.stop()
        self._keeper.stop(failed=kind is not None)

    def batches(self) -> Iterator[Batch]:
        """The loader's batches, one pass; time spent waiting for each is `data`."""
        marks, self._began = self._marks, True
        if not self._active:
            self._report_unused()
        for handle in self._expecting:
            handle.remove()
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
            self._count(batch)
            try:
                yield batch
            finally:
                # Also when the loop is left by `break`: its last step was complete.
                self._end_step()

    def _expects_batches(self) -> Callable[..., None]:
        """Return a hook that counts passes until the loop begins."""
        passes = itertools.count(1)

        def hook(*_: object) -> None:
            if torch.is_grad_enabled() and not torch.compiler.is_compiling() and next(passes) == self._every:
                self._report_unused()

        return hook

    def _report_unused(self) -> None:
        """Report, once and on rank 0, what a loop does not use, and what is not recorded because of it."""
        missing = "no batch is from `run.batches()`" if self._active else "the loop is in no `with` statement"
        lost = "its steps, rates, comparison of ranks and hangs are not recorded"
        use = "write `with instrument(...) as run:`, and in it `for batch in run.batches():`"
        if not (self._notified or self._bookkeeper.peers.rank or os.environ.get("RANK", "0") != "0"):
            self._bookkeeper.complain(f"{missing}: {lost}; {use}")
        self._notified = True
        self._hang.beat = math.inf  # it would take the loop for a hang

    def _end_step(self) -> None:
        if not self._active or os.getpid() != self._pid:  # cleaned up after the `with` statement, or forked
            return
        self._marks.end_step()
        self._hang.beat = time.monotonic()
        if self.step % self._every == 0:
            self._hand_over()

    def _hand_over(self) -> None:
        tokens = None if self._tokens is None else self._counted
        steps, waits, losses = self._marks.take(), self._waits.seen, self._losses
        window = Window(step=self.step, steps=steps, tokens=tokens, waits=waits, losses=losses)
        self._counted, self._waits.seen, self._losses = 0, 0, []
        self._bookkeeper.hand_over(window)

    def _count(self, batch: Batch) -> None:
        if self._tokens is None:
            return
        try:
            self._counted += self._tokens(batch)
        except Exception as error:  # a batch of another form must not end the loop
            if self._tokens is not _tokens:
                self._bookkeeper.complain(f"tokens: {type(error).__name__}: {error}")
            self._tokens = None

    def loss(self, value: Tensor | float | None) -> None:
        """Note this rank's loss of this step, before any reduction; it is read later, without a wait here.

        None: a stage of a pipeline without one. Of a DTensor only the local part is read: anything else is a
        collective, for which peers may not wait.
        """
        if value is None or not (self._active and self._began):
            return
        try:
            noted = torch.as_tensor(value).detach()
            local: Tensor = noted.to_local() if hasattr(noted, "to_local") else noted
            self._losses.append((self.step, local.isfinite().all()))
        except Exception as error:  # a loss of another form must not end the loop
            text = f"loss: {type(error).__name__}: {error}"
            if text not in self._bookkeeper.problems:
                self._bookkeeper.complain(text)

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
        self._hang.beat = math.inf  # storage may take any time
        try:
            yield
        finally:
            self._marks.enter(before)
            self._hang.beat = time.monotonic()

    def _enters(self, section: int) -> Callable[..., None]:
        def hook(*_: object) -> None:
            self._marks.enter(section)

        return hook

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def timed(*arguments: Any, **options: Any) -> Any:
            self._marks.enter(COMPUTE)
            found = call(*arguments, **options)
            self._forward_ends()
            return found

        return timed

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
        self._marks.enter(EXPOSED if self._overlaps else OTHER)
        # Callbacks may queue further ones (torch `engine.cpp`, `exec_post_processing`): this one runs last,
        # after the wait.
        torch.autograd.Variable._execution_engine.queue_callback(self._backward_ends)

    def _backward_ends(self) -> None:
        self._in_backward = False
        self._marks.enter(OTHER)


def _tokens(batch: Any) -> int:
    """Count the tokens of a batch: an integer tensor [sequences, length]; TypeError for any other batch."""
    if isinstance(batch, Mapping):
        batch = batch["input_ids"]
    elif isinstance(batch, tuple | list):
        batch = batch[0]
    if not (isinstance(batch, Tensor) and batch.dim() == 2 and not batch.is_floating_point()):
        raise TypeError("the batch has no integer tensor of two dimensions")
    return batch.numel()


instrument = InstrumentedRun
