"""Where the seconds of real steps go, through the instrument that users put around their own loop."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from smoke_training.formulae.mfu import flops_per_token
from smoke_training.instrumentation import Run, instrument
from smoke_training.instrumentation.marks import Step
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.training import transformer

if TYPE_CHECKING:
    from smoke_training.probes.training.step import StepTimer

STEPS, STEPS_FULL = 20, 60
WARMUP = 2  # the first optimizer step allocates its state
SAVE_EVERY = 10
BARE = 20
BUCKET_BYTES = 25 * 2**20  # DistributedDataParallel's default bucket


class Loader:
    """Synthetic tokens, made when they are asked for: the work of a loader without workers."""

    def __init__(self, gang: Gang, size: transformer.Size, seed: int, steps: int) -> None:
        self.gang, self.size, self.seed, self.steps = gang, size, seed, steps

    def __iter__(self) -> Iterator[Tensor]:
        for step in range(self.steps):
            self.gang.beat()
            yield transformer.tokens(
                self.size, self.seed, step * self.gang.world + self.gang.rank, self.gang.device
            )


def measure(context: Context, timer: "StepTimer") -> Line:
    """The `decomposition` evidence of real steps: loader, forward, backward, optimizer, checkpoint."""
    gang, size = context.gang, timer.size
    optimizer = torch.optim.SGD(timer.model.parameters(), lr=0.01, momentum=0.9)
    steps = WARMUP + (STEPS_FULL if context.full else STEPS)
    loader = Loader(gang, size, context.plan.seed, steps)
    path = context.scratch / f"decomposition-{gang.rank}.pt"
    timer.model.zero_grad()
    gang.barrier()
    with instrument(timer.model, optimizer, loader, every=steps) as run:
        for batch in run.batches():
            timer.model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            if run.step % SAVE_EVERY == 0:
                _save(run, timer, path)
    path.unlink(missing_ok=True)
    gang.sync()
    return {
        "kind": "decomposition",
        **_rows(gang, run.history[WARMUP:]),
        "bare": _bare(gang, timer.gradient_bytes, timer.dtype),
        "tokens_per_step": size.tokens * gang.world,
        "flops_per_token": flops_per_token(
            parameters=timer.parameters,
            embedding_parameters=(size.vocabulary + size.context) * size.width,
            layers=size.layers,
            width=size.width,
            context=size.context,
        ),
        "dtype": str(timer.dtype).removeprefix("torch."),
        "device": torch.cuda.get_device_name(gang.device) if gang.cuda else "cpu",
    }


def _save(run: "Run[Tensor]", timer: "StepTimer", path: Path) -> None:
    """Every rank writes the weights to its node's scratch folder and waits until they are durable."""
    with run.checkpoint(), path.open("wb") as stream:
        torch.save(timer.model.module.state_dict(), stream)
        stream.flush()
        os.fsync(stream.fileno())


def _rows(gang: Gang, steps: list[Step]) -> Line:
    columns = [list(column) for column in zip(*steps, strict=True)]
    return {name: gang.rows(column) for name, column in zip(Step._fields, columns, strict=True)}


def _bare(gang: Gang, size_bytes: int, dtype: torch.dtype) -> list[float]:
    """Seconds of the gradient exchange with nothing to hide behind; the maximum over ranks."""
    width = torch.empty(0, dtype=dtype).element_size()
    buckets = [
        torch.zeros(min(BUCKET_BYTES, size_bytes - start) // width, dtype=dtype, device=gang.device)
        for start in range(0, size_bytes, BUCKET_BYTES)
    ]
    seconds = []
    for _ in range(BARE):
        gang.barrier()
        gang.sync()
        start = time.perf_counter()
        works = [dist.all_reduce(bucket, async_op=True) for bucket in buckets]
        for work in works:
            if work is not None:
                work.wait()
        gang.sync()
        seconds.append(time.perf_counter() - start)
    return gang.maxima(seconds)
