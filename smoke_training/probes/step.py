"""The training step with and without its gradient all-reduce, on all ranks at once.

Compute-only iterations (`no_sync`) alternate with synchronised ones in the order A B B A, so that both see
the same neighbours, clocks and temperatures; ten pairs make a block of the statistics. A "step" is forward
and backward: the optimizer costs the same in both and would let the replicas drift apart in the
unsynchronised blocks. Every rank does the same work on the same shapes; garbage collection is off; ranks
meet at a barrier before every iteration, outside the timed region.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.nn.parallel import DistributedDataParallel

from smoke_training import straggler
from smoke_training.probes import transformer
from smoke_training.probes.gang import Gang
from smoke_training.runtime import host

WARMUP = 6
ALONE = 20
BATCHES = 4
BUDGET_S = 40.0  # of sampling: on a busy machine the cap of iterations would take minutes


@dataclass
class Series:
    """Per-iteration figures of this rank, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    queue: list[float | None] = field(default_factory=list)


class StepTimer:
    """Times one step at a time; CUDA uses events around the step (untested on hardware)."""

    def __init__(self, gang: Gang, seed: int) -> None:
        self.gang = gang
        self.size = transformer.GPU_TIMING if gang.cuda else transformer.CPU_TIMING
        dtype = torch.bfloat16 if gang.cuda else torch.float32
        network = transformer.build(self.size, seed, gang.device, dtype)
        self.parameters = sum(p.numel() for p in network.parameters())
        self.gradient_bytes = sum(p.numel() * p.element_size() for p in network.parameters())
        self.model = DistributedDataParallel(network)
        self.batches = [
            transformer.tokens(self.size, seed, gang.rank * BATCHES + i, gang.device) for i in range(BATCHES)
        ]
        self.clock = host.QueueClock()

    def compute(self, series: Series, index: int) -> None:
        """One step without communication."""
        with self.model.no_sync():
            self._timed(series, index)

    def synchronised(self, series: Series, index: int) -> None:
        """One step with the gradient all-reduce."""
        self._timed(series, index)

    def _timed(self, series: Series, index: int) -> None:
        batch = self.batches[index % BATCHES]
        self.gang.sync()
        queued, cpu, start = self.clock.waited(), time.thread_time(), time.perf_counter()
        self.model(batch).backward()
        self.gang.sync()
        series.wall.append(time.perf_counter() - start)
        series.cpu.append(time.thread_time() - cpu)
        after = self.clock.waited()
        series.queue.append(None if queued is None or after is None else after - queued)


def measure(gang: Gang, seed: int, decided: Callable[[dict[str, object]], bool]) -> dict[str, object]:
    """The `training` evidence; `decided` sees it at every look and says whether it is enough."""
    timer = StepTimer(gang, seed)
    ticks, throttled = host.cpu_ticks(), host.throttled_periods()
    gc.collect()
    gc.disable()
    warm = Series()
    for index in range(WARMUP):
        gang.barrier()
        timer.synchronised(warm, index)
        timer.compute(warm, index)
    alone = _alone(gang, timer)
    began = time.monotonic()
    compute, step = Series(), Series()
    while True:
        iterations = straggler.LOOK_EVERY if compute.wall else straggler.FIRST_LOOK
        _iterate(gang, timer, compute, step, iterations)
        evidence = _evidence(gang, timer, compute, step)
        evidence |= {
            "alone": alone,
            "steal_share": _steal(ticks, host.cpu_ticks()),
            "throttled_periods": _throttled(gang, throttled),
        }
        spent = gang.maxima([time.monotonic() - began])[0]  # one clock for all, so that all stop together
        if decided(evidence) or len(compute.wall) >= straggler.CAP or spent > BUDGET_S:
            gc.enable()
            return evidence


def _iterate(gang: Gang, timer: StepTimer, compute: Series, step: Series, iterations: int) -> None:
    for index in range(iterations):
        pair = [(timer.compute, compute), (timer.synchronised, step)]
        for run, series in pair if index % 2 == 0 else reversed(pair):
            gang.barrier()
            run(series, index)


def _alone(gang: Gang, timer: StepTimer) -> list[float]:
    """Compute-only steps of rank 0 while all others wait at the barrier; the same list on every rank."""
    series = Series()
    gang.barrier()
    if gang.rank == 0:
        for index in range(ALONE):
            timer.compute(series, index)
    gang.barrier()
    return gang.maxima(series.wall or [0.0] * ALONE)


def _evidence(gang: Gang, timer: StepTimer, compute: Series, step: Series) -> dict[str, object]:
    return {
        "kind": "training",
        "compute": gang.rows(compute.wall),
        "compute_cpu": gang.rows(compute.cpu),
        "compute_queue": _queues(gang, compute),
        "step": gang.rows(step.wall),
        "parameters": timer.parameters,
        "gradient_bytes": timer.gradient_bytes,
        "tokens_per_step": timer.size.tokens * gang.world,
    }


def _queues(gang: Gang, series: Series) -> list[list[float]] | None:
    """Waiting times of all ranks, or None as soon as one rank's kernel does not report them."""
    rows = gang.rows([-1.0 if value is None else value for value in series.queue])
    return None if any(value < 0 for row in rows for value in row) else rows


def _throttled(gang: Gang, before: int | None) -> int | None:
    """Quota throttlings of any rank's cgroup since `before`; None where no rank can tell."""
    now = host.throttled_periods()
    known = -1.0 if before is None or now is None else float(now - before)
    most = gang.maxima([known])[0]
    return None if most < 0 else int(most)


def _steal(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    if before is None or after is None or after[1] == before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])
