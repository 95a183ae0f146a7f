"""Measure the parts of real steps with `instrument`, as users do in their own loops."""

import os
from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from smoke_training.evidence.training import Decomposition
from smoke_training.formulae.mfu import flops_per_token
from smoke_training.instrumentation import instrument
from smoke_training.instrumentation.marks import StepTimes
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.training import transformer

STEPS, STEPS_FULL = 20, 60
WARMUP = 2  # the first optimizer step allocates its state
SAVE_EVERY = 10
SAVED_BYTES = 64 << 20  # by each rank; a whole model of each GPU would fill scratch disks and test them alone
BARE = 20
BUCKET_BYTES = 25 * 2**20  # DistributedDataParallel's default bucket


def measure(
    context: ProbeContext, model: DistributedDataParallel, size: transformer.Size, dtype: torch.dtype
) -> Decomposition:
    """The `decomposition` evidence of real steps: loader, forward, backward, optimizer, checkpoint."""
    group = context.group
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    steps = WARMUP + (STEPS_FULL if context.full else STEPS)
    loader = transformer.stream(group, size, context.plan.seed, steps)
    path = context.scratch / f"decomposition-{group.rank}.pt"
    model.zero_grad()
    group.barrier()
    with instrument(model, optimizer, loader, every=steps) as run:
        for batch in run.batches():
            model(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            if run.step % SAVE_EVERY == 0:
                with run.checkpoint(), path.open("wb") as stream:  # per rank, until durable
                    torch.save(_some_of(model.module.state_dict()), stream)
                    stream.flush()
                    os.fsync(stream.fileno())
    path.unlink(missing_ok=True)
    group.sync()
    rows = (group.rows(column) for column in zip(*run.history[WARMUP:], strict=True))
    return Decomposition(
        **dict(zip(StepTimes._fields, rows, strict=True)),
        bare=_bare(group, sum(p.numel() * p.element_size() for p in parameters), dtype),
        tokens_per_step=size.tokens * group.world,
        flops_per_token=flops_per_token(
            parameters=sum(p.numel() for p in parameters),
            embedding_parameters=(size.vocabulary + size.context) * size.width,
            layers=size.layers,
            width=size.width,
            context=size.context,
        ),
        dtype=str(dtype).removeprefix("torch."),
        device=torch.cuda.get_device_name(group.device) if group.cuda else "cpu",
    )


def _some_of(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the first entries of a state that fit into `SAVED_BYTES`."""
    found, left = dict[str, Tensor](), SAVED_BYTES
    for name, value in state.items():
        if value.nbytes <= left:
            found[name], left = value, left - value.nbytes
    return found


def _bare(group: Group, size_bytes: int, dtype: torch.dtype) -> tuple[float, ...]:
    """Return seconds of the gradient exchange without overlap; the maximum over ranks."""
    width = torch.empty(0, dtype=dtype).element_size()
    buckets = [
        torch.zeros(min(BUCKET_BYTES, size_bytes - start) // width, dtype=dtype, device=group.device)
        for start in range(0, size_bytes, BUCKET_BYTES)
    ]

    def exchange() -> None:
        works = [dist.all_reduce(bucket, async_op=True) for bucket in buckets]
        for work in works:
            if work is not None:
                work.wait()

    seconds = []
    for _ in range(BARE):
        group.barrier()
        seconds.append(group.seconds(exchange))
    return group.maxima(seconds)
