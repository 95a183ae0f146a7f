"""The training step with and without its gradient all-reduce, on all ranks at once.

Compute-only iterations (`no_sync`) alternate with synchronised ones in the order A B B A, so that both see
the same neighbours, clocks and temperatures; ten pairs make a block of the statistics. A "step" is forward
and backward: the optimizer would let the replicas drift apart in the unsynchronised blocks. Garbage
collection is off; ranks meet at a barrier before every iteration, outside the timed region, where gradients
are cleared as well. A fixed spin before the first look and after each one measures the noise of the machines.
"""

import time
from collections.abc import Iterator
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel

from smoke_training.evidence import Record
from smoke_training.evidence.training import Training
from smoke_training.formulae.overlap import bucket_sizes
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.stopwatch import Series, without_collection
from smoke_training.probes.training import decomposition, fitness, transformer
from smoke_training.probes.training.numerics import GradientWatch
from smoke_training.runtime.window import WindowReader
from smoke_training.statistics import straggler

WARMUP = 6
ALONE = 20
BATCHES = 4
REPEATS = 6  # of every batch
BUDGET_S, BUDGET_FULL_S = 25.0, 60.0  # of sampling: on a busy machine the cap of iterations takes minutes
CHECKSUM_EVERY_CUDA = 10  # reading a billion gradients costs a step; on CPU every one is checked


class Sampler:
    """Samples all ranks until nothing more can change the verdict of the training checks.

    On CUDA every step ends with a synchronization.
    """

    def __init__(self, context: ProbeContext) -> None:
        self.context, self.group = context, context.group
        group, seed = context.group, context.plan.seed
        self.size = transformer.GPU_TIMING if group.cuda else transformer.CPU_TIMING
        self.dtype = torch.bfloat16 if group.cuda else torch.float32
        self.model = DistributedDataParallel(transformer.build(self.size, seed, group.device, self.dtype))
        self.watch = GradientWatch(self.model, group)
        self.batches = [
            transformer.tokens(self.size, seed, group.rank * BATCHES + i, group.device)
            for i in range(BATCHES)
        ]
        self.spinner, self.spins = fitness.Spinner(group), Series()
        self.compute, self.step = Series(), Series()

    def sample(self) -> Training:
        """The `training` evidence."""
        warm = Series()
        for index in range(WARMUP):
            self.group.barrier()
            self._run(warm, index, synchronised=True)
            self._run(warm, index, synchronised=False)
        alone = self._alone()
        reader = fitness.window_reader(self.group)
        self.spinner.run(self.spins, fitness.SPINS_BETWEEN)
        began = time.monotonic()
        budget = BUDGET_FULL_S if self.context.full else BUDGET_S
        while True:
            self._iterate(reader, straggler.LOOK_EVERY if self.compute.wall else straggler.FIRST_LOOK)
            self.spinner.run(self.spins, fitness.SPINS_BETWEEN)
            found = self._found(reader, alone)
            # One clock for all, so that all stop together; after a wrong gradient times are irrelevant.
            spent, wrong = self.group.maxima([time.monotonic() - began, float(self.watch.wrong)])
            over = len(self.compute.wall) >= straggler.CAP or spent > budget or wrong
            if over or not self.context.sampling.training(found):
                return found

    def _alone(self) -> tuple[float, ...]:
        """Time compute-only steps of rank 0 while others wait at the barrier; the same list on every rank.

        They do not count as passes of the phase, because the other ranks have none.
        """
        series = Series()
        self.group.barrier()
        if self.group.rank == 0:
            for index in range(ALONE):
                self._timed(self.model.module, series, index)
                self.watch.check()
                self.watch.settle()
        self.group.barrier()
        return self.group.maxima(series.wall or [0.0] * ALONE)

    def _iterate(self, reader: WindowReader, iterations: int) -> None:
        for index in range(iterations):
            first = index % 2 == 0
            for synchronised in (not first, first):
                self.group.barrier()
                if synchronised:
                    self._run(self.step, index, synchronised=True)
                    continue
                reader.resume()
                self._run(self.compute, index, synchronised=False)
                reader.pause()
                if first:
                    reader.sample_clock()

    def _run(self, series: Series, index: int, *, synchronised: bool) -> None:
        with nullcontext() if synchronised else self.model.no_sync():
            self._timed(self.model, series, index)
        self.watch.settle()
        if synchronised and (not self.group.cuda or index % CHECKSUM_EVERY_CUDA == 0):
            self.watch.checksum()

    def repeat(self) -> None:
        """Run compute-only steps on accelerators with deterministic algorithms, for their bits.

        The timed ones use the fastest algorithms, which add in any order.
        """
        torch.use_deterministic_algorithms(mode=True)
        for index in range(REPEATS * BATCHES):
            self.group.beat()
            self.model.zero_grad()
            self.watch.work = index % BATCHES
            with self.model.no_sync():
                self.model(self.batches[index % BATCHES]).backward()
        self.watch.work = None
        torch.use_deterministic_algorithms(mode=False)

    def _timed(self, model: torch.nn.Module, series: Series, index: int) -> None:
        model.zero_grad()
        # Weights do not change here. On CUDA, gradients of attention and embedding add in any order.
        self.watch.work = None if self.group.cuda else index % BATCHES
        self.group.sync()
        with series.timed():
            model(self.batches[index % BATCHES]).backward()
            self.group.sync()

    def _found(self, reader: WindowReader, alone: tuple[float, ...]) -> Training:
        group, sizes = self.group, [p.numel() * p.element_size() for p in self.model.parameters()]
        return Training(
            compute=group.rows(self.compute.wall),
            compute_cpu=group.rows(self.compute.cpu),
            compute_queue=group.known_rows(self.compute.queue),
            step=group.rows(self.step.wall),
            alone=alone,
            spin=group.rows(self.spins.wall),
            spin_queue=group.known_rows(self.spins.queue),
            windows=fitness.windows(group, reader),
            parameters=sum(sizes) // self.dtype.itemsize,
            gradient_bytes=sum(sizes),
            buckets=bucket_sizes(sizes[::-1]),
            tokens_per_step=self.size.tokens * group.world,
            backend=group.backend,
        )


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `training`, `decomposition` and `numerics` evidence."""
    sampler = Sampler(context)
    with without_collection(), sampler.watch as watch:
        yield sampler.sample()
        if context.group.cuda:
            sampler.repeat()
        watch.work = None  # weights change after this
        yield decomposition.measure(context, sampler.model, sampler.size, sampler.dtype)
        yield watch.evidence("training")
