"""Two ranks under torchrun: loops with FSDP2, tensor and pipeline parallelism, and one that hangs.

    torchrun --nproc-per-node 2 tests/smoke_training/instrumentation/parallel.py FOLDER

Rank 1 is slow in its forward pass. Each rank writes FOLDER/RANK.json: by name, its latest record.
"""

import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import smoke_training
from smoke_training.instrumentation import peers, step_records

PAUSE, STEPS = 0.03, 6


class Slow(nn.Module):
    def forward(self, batch: Tensor) -> Tensor:
        time.sleep(PAUSE * dist.get_rank())
        return batch


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Slow(), nn.Linear(8, 8), nn.Linear(8, 8))


def batches() -> Iterator[Tensor]:
    return iter([torch.ones(4, 8) for _ in range(STEPS)])


def trained(model: nn.Module, step: Callable[[Tensor], object], **wishes: Any) -> dict[str, Any]:
    """Train; the last record, in which the ranks are compared, and the medians of all steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with smoke_training.instrument(model, optimizer, batches(), every=2, **wishes) as run:
        for batch in run.batches():
            loss = step(batch)
            if isinstance(loss, Tensor):
                run.loss(loss)
            optimizer.step()
            optimizer.zero_grad()
    medians = [statistics.median(column) for column in zip(*run.history, strict=True)]
    return {**(run.latest or {}), "problems": run.problems, "medians": medians}


def sharded() -> dict[str, Any]:
    model = layers()
    mesh = init_device_mesh("cpu", (2,))
    for layer in list(model)[1:]:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return trained(model, lambda batch: model(batch).mean().backward(), tokens=len)


def poisoned() -> dict[str, Any]:
    """Rank 1 has a NaN in the third step, and by the reduction of gradients both have it in the fourth."""
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
    steps = iter(range(1, STEPS + 1))

    def step(batch: Tensor) -> Tensor:
        wrong = next(steps) == 3 and dist.get_rank() == 1
        loss: Tensor = model(batch * float("nan") if wrong else batch).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    return trained(model, step)


def placed() -> dict[str, Any]:
    """The loss is a DTensor whose local parts are still to be added up; that of rank 1 is once a NaN.

    No step waits for another rank: rank 0 leaves the loop before rank 1.
    """
    model = nn.Sequential(Slow(), nn.Linear(8, 8))
    mesh = init_device_mesh("cpu", (2,))
    steps = iter(range(1, STEPS + 1))

    def step(batch: Tensor) -> Tensor:
        wrong = next(steps) == 3 and dist.get_rank() == 1
        loss = model(batch * float("nan") if wrong else batch).mean().detach()
        return DTensor.from_local(loss, mesh, [Partial()], run_check=False)

    return trained(model, step)


def tensor_parallel() -> dict[str, Any]:
    model = layers()
    parallelize_module(model, init_device_mesh("cpu", (2,)), {"1": ColwiseParallel(), "2": RowwiseParallel()})
    return trained(model, lambda batch: model(batch).mean().backward())


def pipelined() -> dict[str, Any]:
    rank = dist.get_rank()
    model = layers()[:2] if rank == 0 else nn.Sequential(Slow(), nn.Linear(8, 8))
    stage = PipelineStage(model, rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(
        stage, n_microbatches=2, loss_fn=lambda out, target: (out - target).square().mean()
    )

    def step(batch: Tensor) -> None:
        if rank == 0:
            schedule.step(batch)
        else:
            schedule.step(target=batch)

    return trained(model, step)


def hung(folder: Path) -> dict[str, Any]:
    late = iter([1.5])

    def step(_: Tensor) -> None:
        if dist.get_rank() == 1:
            time.sleep(next(late, 0))
        dist.all_reduce(torch.ones(512))

    return trained(layers(), step, hang_s=0.8, jsonl=folder / "hang.jsonl")


def main() -> None:
    warnings.simplefilter("ignore")
    # On a busy machine, a peer may be later with its figures than a run waits.
    peers.PATIENCE_S, step_records.FLUSH_S = 50, 100
    dist.init_process_group("gloo")
    folder = Path(sys.argv[1])
    found = {
        "sharded": sharded(), "tensor": tensor_parallel(), "pipeline": pipelined(),
        "poisoned": poisoned(), "placed": placed(), "hang": hung(folder)
    }  # fmt: skip
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(found))
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
