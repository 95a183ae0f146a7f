"""The training step with and without its gradient all-reduce, on all ranks at once.

Compute-only iterations (`no_sync`) alternate with synchronised ones in the order A B B A, so that both see
the same neighbours, clocks and temperatures; ten pairs make a block of the statistics. A "step" is forward
and backward: the optimizer costs the same in both and would let the replicas drift apart in the
unsynchronised blocks. Every rank does the same work on the same shapes; garbage collection is off; ranks
meet at a barrier before every iteration, outside the timed region, where gradients are cleared as well. A
fixed spin before the first look and after each one tells how quiet the machines were meanwhile.
"""

import gc
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch.nn.parallel import DistributedDataParallel

from smoke_training import verdict
from smoke_training.evidence import parse
from smoke_training.evidence.training import Training
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.training import decomposition, fitness, transformer
from smoke_training.probes.training.numerics import Watch
from smoke_training.runtime import host
from smoke_training.runtime.window import WindowReader
from smoke_training.statistics import straggler

WARMUP = 6
ALONE = 20
BATCHES = 4
BUDGET_S, BUDGET_FULL_S = 25.0, 60.0  # of sampling: on a busy machine the cap of iterations takes minutes
CHECKSUM_EVERY_CUDA = 10  # reading a billion gradients costs a step; on CPU every one is checked


@dataclass
class Series:
    """Per-iteration figures of this rank, in seconds."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    queue: list[float | None] = field(default_factory=list)


class StepTimer:
    """Times one step at a time; on CUDA the device is waited for (untested on hardware)."""

    def __init__(self, gang: Gang, seed: int) -> None:
        self.gang = gang
        self.size = transformer.GPU_TIMING if gang.cuda else transformer.CPU_TIMING
        self.dtype = torch.bfloat16 if gang.cuda else torch.float32
        network = transformer.build(self.size, seed, gang.device, self.dtype)
        self.parameters = sum(p.numel() for p in network.parameters())
        self.gradient_bytes = sum(p.numel() * p.element_size() for p in network.parameters())
        self.model = DistributedDataParallel(network)
        self.watch = Watch(self.model)
        self.batches = [
            transformer.tokens(self.size, seed, gang.rank * BATCHES + i, gang.device) for i in range(BATCHES)
        ]
        self.clock = host.QueueClock()

    def alone(self, series: Series, index: int) -> None:
        """One step outside the gang: not a pass of the phase, because the other ranks have none."""
        self.model.zero_grad()
        self._timed(self.model.module, series, self.batches[index % BATCHES])
        self.watch.check()
        self.watch.settle()

    def run(self, series: Series, index: int, *, synchronised: bool) -> None:
        """One step, with or without the gradient all-reduce."""
        self.model.zero_grad()
        with nullcontext() if synchronised else self.model.no_sync():
            self._timed(self.model, series, self.batches[index % BATCHES])
        self.watch.settle()
        if synchronised and (not self.gang.cuda or index % CHECKSUM_EVERY_CUDA == 0):
            self.watch.checksum()

    def _timed(self, model: torch.nn.Module, series: Series, batch: torch.Tensor) -> None:
        self.gang.sync()
        queued, cpu, start = self.clock.waited(), time.thread_time(), time.perf_counter()
        model(batch).backward()
        self.gang.sync()
        series.wall.append(time.perf_counter() - start)
        series.cpu.append(time.thread_time() - cpu)
        after = self.clock.waited()
        series.queue.append(None if queued is None or after is None else after - queued)


class Sampler:
    """Samples all ranks until nothing more can change the verdict of the training checks."""

    def __init__(self, context: Context) -> None:
        self.context, self.gang = context, context.gang
        self.timer = StepTimer(self.gang, context.plan.seed)
        self.spinner, self.spins = fitness.Spinner(self.gang), fitness.Spins()
        self.compute, self.step = Series(), Series()
        self.reader: WindowReader | None = None

    def sample(self) -> Line:
        """The `training` evidence."""
        self._warm_up()
        alone = self._alone()
        self.reader = fitness.window_reader(self.gang)
        self.spinner.run(self.spins, fitness.SPINS_BETWEEN)
        began = time.monotonic()
        budget = BUDGET_FULL_S if self.context.full else BUDGET_S
        while True:
            self._iterate(straggler.LOOK_EVERY if self.compute.wall else straggler.FIRST_LOOK)
            self.spinner.run(self.spins, fitness.SPINS_BETWEEN)
            line = {**self._line(self.reader), "alone": alone}
            # One clock for all, so that all stop together.
            spent = self.gang.maxima([time.monotonic() - began])[0]
            if self._decided(line) or len(self.compute.wall) >= straggler.CAP or spent > budget:
                return line

    def _warm_up(self) -> None:
        warm = Series()
        for index in range(WARMUP):
            self.gang.barrier()
            self.timer.run(warm, index, synchronised=True)
            self.timer.run(warm, index, synchronised=False)

    def _alone(self) -> list[float]:
        """Compute-only steps of rank 0 while all others wait at the barrier; the same list on every rank."""
        series = Series()
        self.gang.barrier()
        if self.gang.rank == 0:
            for index in range(ALONE):
                self.timer.alone(series, index)
        self.gang.barrier()
        return self.gang.maxima(series.wall or [0.0] * ALONE)

    def _iterate(self, iterations: int) -> None:
        assert self.reader is not None
        for index in range(iterations):
            first = index % 2 == 0
            for synchronised in (not first, first):
                self.gang.barrier()
                if synchronised:
                    self.timer.run(self.step, index, synchronised=True)
                    continue
                self.reader.resume()
                self.timer.run(self.compute, index, synchronised=False)
                self.reader.pause()
            if first:
                self.reader.sample_clock()

    def _line(self, reader: WindowReader) -> Line:
        gang, timer = self.gang, self.timer
        return {
            "kind": "training",
            "compute": gang.rows(self.compute.wall),
            "compute_cpu": gang.rows(self.compute.cpu),
            "compute_queue": fitness.known_rows(gang, self.compute.queue),
            "step": gang.rows(self.step.wall),
            **fitness.spin_lines(gang, self.spins),
            "windows": fitness.windows(gang, reader),
            "parameters": timer.parameters,
            "gradient_bytes": timer.gradient_bytes,
            "tokens_per_step": timer.size.tokens * gang.world,
        }

    def _decided(self, line: Line) -> bool:
        """Whether more iterations could still change the verdict; the same answer on every rank."""
        found = parse([json.dumps(line)]).of(Training)
        return found is not None and verdict.training_decided(found, self.context.plan)


def measure(context: Context) -> Iterator[Line]:
    """The `training`, `decomposition` and `numerics` evidence."""
    sampler = Sampler(context)
    gc.collect()
    gc.disable()
    try:
        with sampler.timer.watch as watch:
            yield sampler.sample()
            yield decomposition.measure(context, sampler.timer)
            yield from watch.lines(context.gang, "training")
    finally:
        gc.enable()
