"""Evaluate windows of steps into records: means by part, and a comparison of the ranks."""

import contextlib
import json
import math
import os
import queue
import statistics
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from smoke_training.formulae.mfu import mfu
from smoke_training.instrumentation.marks import Pending, StepTimes
from smoke_training.instrumentation.peers import Peers
from smoke_training.runtime import processes
from smoke_training.runtime.nvml import Nvml
from smoke_training.statistics.peers import WINDOWS_KEPT, PeerComparison

Record = dict[str, object]

HISTORY = 10_000  # steps kept for `Run.history`
FLUSH_S = 10.0  # limit for leaving the `with` statement
PARTS = ("data", "compute", "exposed_communication", "checkpoint", "other")
OWN_WINDOWS = 5  # before a rank is compared with its own history


@dataclass(frozen=True, kw_only=True)
class Window:
    """Some steps: `step` is the last one, `tokens` None where they were not counted, `waits` those seen."""

    step: int
    steps: Pending
    tokens: int | None = None
    waits: int = 0
    losses: Sequence[tuple[int, Tensor]] = ()


class Bookkeeper(threading.Thread):
    """Evaluates windows of steps in a thread; `cost`: FLOPs of a token, peak TFLOPS of a device."""

    def __init__(
        self,
        models: Sequence[nn.Module],
        jsonl: str | Path | None,
        on_record: Callable[[Record], object] | None,
        cost: tuple[float | None, float | None],
    ) -> None:
        super().__init__(name="smoke-training-instrument", daemon=True)
        self.history: deque[StepTimes] = deque(maxlen=HISTORY)
        self.latest: Record | None = None
        self.problems: list[str] = []
        self.peers = peers = Peers()
        self._on_record, self._cost = on_record, cost
        self._overlaps = peers.world == 1 or any(isinstance(m, DistributedDataParallel) for m in models)
        self._unknown = why_unknown(models) if peers.world > 1 else None
        self._path = Path(jsonl) if jsonl is not None and peers.rank == 0 else None
        self._comparison = PeerComparison(peers.world) if peers.world > 1 else None
        self._own = deque[float](maxlen=WINDOWS_KEPT)
        self._counted_s = 0.0
        self._broken: int | None = None
        self._accused: tuple[int, int] | None = None
        self._gpu = _gpu(models)
        self._window, self._given_up = 0, False
        self._work: queue.SimpleQueue[Window | None] = queue.SimpleQueue()
        self.hand_over: Callable[[Window], None] = self._work.put

    def stop(self) -> None:
        """Evaluate the remaining windows; gives up after FLUSH_S, so that training can end."""
        self._work.put(None)
        self.join(FLUSH_S)
        if self.is_alive():
            self._given_up = True
            self.complain(f"the last records were not written within {FLUSH_S:.0f} s")

    def run(self) -> None:
        """Evaluate windows until `stop`."""
        while (item := self._work.get()) is not None and not self._given_up:
            # An error here must not reach the training loop; it is recorded, with one warning.
            try:
                self._evaluate(item)
            except Exception as error:
                self.complain(f"{type(error).__name__}: {error}")

    def _evaluate(self, given: Window) -> None:
        steps = given.steps()
        if not steps:
            return
        self.history.extend(steps)
        window, self._window = self._window, self._window + 1
        unknown = self._unknown
        if unknown is None and not self._overlaps and not given.waits:
            unknown = "no wait for another rank was seen in Python: communication is part of compute or other"
        own = summary(steps, unknown) | self._rates(steps, given.tokens)
        own["nonfinite_loss_step"] = self._broken = self._broken or self._first_broken(given.losses)
        record: Record = {"step": given.step, "rank": self.peers.rank, "world": self.peers.world, **own}
        record |= {"straggler": None, "straggler_reason": "one rank has no peers", "ranks": None}
        record["tokens_per_second_all"] = own["tokens_per_second"] if self._comparison is None else None
        if self._comparison is None:
            self._accuse([own])
        else:
            self.peers.publish(window, own)
            if self.peers.rank == 0:
                record |= self._compared(window, self._comparison)
            else:
                record["straggler_reason"] = "rank 0 has the comparison"
        self.latest = record
        if self._path is not None:
            with self._path.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
        if self.peers.rank == 0 and self._on_record is not None:
            self._on_record(record)

    def _compared(self, window: int, comparison: PeerComparison) -> Record:
        figures, missing = self.peers.collect(window, lambda: self._work.qsize() > 2)  # 2: the end
        if missing:
            late = ", ".join(map(str, missing))
            return {"straggler_reason": f"ranks without figures for this window: {late}", "ranks": figures}
        rows = [row for row in figures if isinstance(row, dict)]
        rates = [row["tokens_per_second"] for row in rows]
        tokens = None if None in rates else math.fsum(rates)
        self._accuse(rows)
        comparison.add([float(row["median_compute_s"]) for row in rows])
        standings = comparison.standings()
        worst = max(standings, key=lambda standing: standing.slowdown)
        scores = [asdict(standing) for standing in standings]
        return {
            "straggler": scores[worst.rank],
            "straggler_reason": None,
            "tokens_per_second_all": tokens,
            "ranks": [{**row, **score} for row, score in zip(rows, scores, strict=True)],
        }

    def _first_broken(self, losses: Sequence[tuple[int, Tensor]]) -> int | None:
        """Return the first step whose loss was not finite; a device that cannot be read costs no other."""
        broken = list[int]()
        for device in {good.device for _, good in losses}:
            of_device = [(step, good) for step, good in losses if good.device == device]
            try:
                finite = torch.stack([good for _, good in of_device]).tolist()
                broken += [step for (step, _), good in zip(of_device, finite, strict=True) if not good]
            except Exception as error:
                self.complain(f"losses on {device}: {type(error).__name__}: {error}")
        return min(broken, default=None)

    def _accuse(self, rows: Sequence[Record]) -> None:
        """Report, once, the ranks of the first loss that is not finite."""
        broken = [
            (at, rank) for rank, row in enumerate(rows) if isinstance(at := row["nonfinite_loss_step"], int)
        ]
        if broken and not self._accused:
            first, _ = self._accused = min(broken)
            ranks = ", ".join(str(rank) for at, rank in broken if at == first)
            self.complain(f"the loss of rank {ranks} was the first that is not finite, in step {first}")

    def _rates(self, steps: list[StepTimes], tokens: int | None) -> Record:
        """Return rates of these steps, effective training time so far, own history and state of the GPU."""
        total = math.fsum(step.total for step in steps)
        self._counted_s += total - math.fsum(step.checkpoint for step in steps)
        rate = None if tokens is None or total <= 0 else tokens / total
        (flops, peak), process = self._cost, processes.state_of(os.getpid())
        began = process.started / os.sysconf("SC_CLK_TCK") if process else 0.0
        age_s = max(1e-9, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
        needed = {"tokens": rate, "flops_per_token": flops, "peak_tflops": peak}
        unusable = [name for name, value in needed.items() if value is None or not value > 0]
        median = statistics.median(step.compute for step in steps)
        slowdown = median / statistics.median(self._own) if len(self._own) >= OWN_WINDOWS else None
        self._own.append(median)
        return {
            "tokens_per_second": rate,
            "mfu": mfu(flops_per_token=flops, tokens_per_second=rate, devices=1, peak_tflops=peak)
            if rate and flops and peak and not unusable
            else None,
            "mfu_reason": f"needs {', '.join(unusable)} above 0" if unusable else None,
            "ettr": min(1.0, self._counted_s / age_s),
            "slowdown_to_own_history": slowdown,
            "gpu": _look(self._gpu),
        }

    def hung(self, step: int, seconds: float, texts: Sequence[str]) -> None:
        """Record a loop that made no step for so long, with the reading of torch's flight recorder."""
        self.complain(f"no step after {step} for {seconds:.0f} s: {'; '.join(texts)}")
        if self._path is not None:
            with self._path.open("a") as stream:
                stream.write(json.dumps({"step": step, "no_step_for_s": seconds, "hang": list(texts)}) + "\n")

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


def why_unknown(models: Sequence[nn.Module]) -> str | None:
    """Return why waits for other ranks cannot be seen in these models; None if they can."""
    if all(isinstance(model, DistributedDataParallel) for model in models):
        return None
    # What the loop has not imported is not in its models, and takes long to import.
    sharded = getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", ())
    compiled = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
    for module in (module for model in models for module in model.modules()):
        if isinstance(module, sharded):
            return "FullyShardedDataParallel (FSDP1) waits in streams: part of compute"
        if isinstance(module, compiled) or module._compiled_call_impl is not None:
            return "compiled code exchanges inside of its graph: part of compute"
    return None


def _gpu(models: Sequence[nn.Module]) -> Nvml | None:
    parameter = next((p for model in models for p in model.parameters()), None)
    if parameter is None or not parameter.is_cuda:
        return None
    with contextlib.suppress(OSError, AttributeError, RuntimeError):
        return Nvml(f"GPU-{torch.cuda.get_device_properties(parameter.device).uuid}")
    return None


def _look(gpu: Nvml | None) -> Record | None:
    """Return watts, the clock in MHz and the reasons that limit it, at the end of a window."""
    if gpu is None:
        return None
    clock = gpu.clock()
    return {"watts": gpu.read()[0].power, "mhz": clock.mhz, "limited_by": list(clock.reasons)}
