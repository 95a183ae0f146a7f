"""Cost of `smoke_training.instrument` per training step: interleaved pairs of steps, with and without it.

    python benchmarks/instrument_overhead.py [pairs] [cpu|cuda]
    torchrun --nproc-per-node 2 benchmarks/instrument_overhead.py [pairs]

Two shells around one model take steps in turns, in the order A B B A; one of them is instrumented. They share
weights, gradients and batches, because two equal models differ by up to 2 % through their places in memory. A
pair gives one difference of step times; the figure is the median over pairs against the median plain step,
with its distribution-free 95 % interval. The same for the CPU time of the whole process, which counts the
bookkeeping thread and hardly feels neighbours, and for a model that takes no time at all, which shows the
bare cost of the hooks (the second shell is in it).
"""

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import smoke_training
from smoke_training.probes.training import transformer
from smoke_training.statistics.medians import median_interval

BLOCK, EVERY, WARMUP = 100, 50, 4
DEVICE = torch.device(sys.argv[2] if len(sys.argv) > 2 else "cpu")
CUDA = DEVICE.type == "cuda"
SIZE = transformer.GPU_TIMING if CUDA else transformer.CPU_TIMING
DTYPE = torch.bfloat16 if CUDA else torch.float32


@dataclass
class Pairs:
    """Seconds per step of plain and instrumented steps, pair by pair."""

    wall: list[tuple[float, float]] = field(default_factory=list)
    cpu: list[tuple[float, float]] = field(default_factory=list)


class Batches:
    """The same batches for ever, ready."""

    def __init__(self, rank: int) -> None:
        self.batches = [transformer.tokens(SIZE, 1, rank * 4 + i, DEVICE) for i in range(4)]

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            yield from self.batches


class Tiny(nn.Module):
    """As little work as a model can do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, _batch: Tensor) -> Tensor:
        return self.weight.sum()


class Shell(nn.Module):
    """A model with hooks of its own around one that others use as well."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, batch: Tensor) -> Tensor:
        loss: Tensor = self.inner(batch)
        return loss


class Learner:
    """A shell and an optimizer without state, ready for one step at a time."""

    def __init__(self, inner: nn.Module) -> None:
        self.model = Shell(inner)
        self.optimizer = torch.optim.SGD(inner.parameters(), lr=0.001)

    def stepper(self, batches: Iterator[Tensor]) -> Callable[[], None]:
        def step() -> None:
            self.model(next(batches)).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

        return step


def timed(step: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter() - wall, time.process_time() - cpu


def block(plain: Learner, watched: Learner, batches: Batches, path: Path, found: Pairs) -> None:
    watch = smoke_training.instrument(watched.model, watched.optimizer, batches, every=EVERY, jsonl=path)
    with watch as run:
        steps = [plain.stepper(iter(batches)), watched.stepper(run.batches())]
        for index in range(WARMUP + BLOCK):
            order = (0, 1) if index % 2 == 0 else (1, 0)
            times = {which: timed(steps[which]) for which in order}
            if index >= WARMUP:
                found.wall.append((times[0][0], times[1][0]))
                found.cpu.append((times[0][1], times[1][1]))
    assert not run.problems, run.problems


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    batches = Batches(rank)
    gc.collect()
    gc.disable()
    for name, build, count in (("tiny model", Tiny, 2000), ("transformer", transformer_model, pairs)):
        found = Pairs()
        model = build().to(DEVICE)
        if dist.is_initialized():
            model = DistributedDataParallel(model)
        learners = (Learner(model), Learner(model))
        with tempfile.TemporaryDirectory() as folder:
            for number in range(-(-count // BLOCK)):
                plain, watched = learners if number % 2 == 0 else learners[::-1]
                block(plain, watched, batches, Path(folder) / "steps.jsonl", found)
        if rank == 0:
            report(name, found)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def transformer_model() -> nn.Module:
    return transformer.build(SIZE, 1, DEVICE, DTYPE)


def report(model: str, found: Pairs) -> None:
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    print(f"{model}: {len(found.wall)} pairs of steps, {ranks} ranks, a window every {EVERY} steps")
    for name, pairs in (("wall", found.wall), ("cpu", found.cpu)):
        plain = statistics.median(pair[0] for pair in pairs)
        interval = median_interval([watched - bare for bare, watched in pairs])
        shares = [value / plain for value in (interval.estimate, interval.low, interval.high)]
        print(
            f"overhead in {name} time: {shares[0]:+.3%} (95 % interval {shares[1]:+.3%} .. {shares[2]:+.3%}) "
            f"of a plain step of {plain * 1e3:.2f} ms: {interval.estimate * 1e6:+.0f} us"
        )


if __name__ == "__main__":
    main()
