"""The training step with sharded parameters (FSDP2): its losses beside DDP's, and the cost of sharding.

`fully_shard` gathers parameters before they are used and scatters gradients after, inside the forward and
backward pass. The exposed part is found by comparison with the same step on an unsharded copy of the model
without any collective, in the order A B B A, for as long as the budget lasts (seconds a step without RDMA).

Losses are those of a smaller model, whose parameters transfer quickly on any network.
"""

import time
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from smoke_training.evidence import Record
from smoke_training.evidence.training import Sharded
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import without_collection
from smoke_training.probes.training import transformer
from smoke_training.probes.training.parity import mean, train
from smoke_training.probes.training.transformer import Size

LOSS_STEPS = 20
WARMUP = 4
LEAST, MOST = 10, 40  # timed pairs of steps
BUDGET_S = 25.0  # of timing


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `sharded` evidence."""
    group, seed = context.group, context.plan.seed
    losses, replicated = _losses(group, transformer.CPU_TIMING, seed)
    size = transformer.GPU_TIMING if group.cuda else transformer.CPU_TIMING
    sharded, parameter_bytes, kept = _shard(group, size, seed)
    plain = transformer.build(size, seed, group.device, torch.float32)
    step, alone = _times(group, sharded, plain, transformer.tokens(size, seed, group.rank, group.device))
    yield Sharded(
        dtype="float32",
        losses=losses,
        replicated=replicated,
        step=group.rows(step),
        plain=group.rows(alone),
        shard_bytes=tuple(group.gather(kept)),
        parameter_bytes=parameter_bytes,
        tokens=transformer.CPU_TIMING.tokens,
    )


def _losses(group: Group, size: Size, seed: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    sharded, _, _ = _shard(group, size, seed)
    replicated = DistributedDataParallel(transformer.build(size, seed, group.device, torch.float32))
    batches = list(transformer.stream(group, size, seed, LOSS_STEPS))
    return mean(group, train(group, sharded, batches)), mean(group, train(group, replicated, batches))


def _shard(group: Group, size: Size, seed: int) -> tuple[nn.Module, int, int]:
    """Return the sharded model, the bytes of all its parameters, and the bytes that this rank keeps."""
    from torch.distributed.fsdp import fully_shard  # noqa: PLC0415 - a second of import that quick runs save
    from torch.distributed.tensor import DTensor  # noqa: PLC0415 - comes with it

    mesh = init_device_mesh(group.device.type, (group.world,))
    model = transformer.build(size, seed, group.device, torch.float32)
    whole = sum(p.numel() * p.element_size() for p in model.parameters())
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    mine = [p.to_local() for p in model.parameters() if isinstance(p, DTensor)]
    return model, whole, sum(part.numel() * part.element_size() for part in mine)


def _times(
    group: Group, sharded: nn.Module, plain: nn.Module, batch: Tensor
) -> tuple[list[float], list[float]]:
    """Return seconds per step on this rank, sharded and without any collective."""
    step, alone = list[float](), list[float]()
    began = time.monotonic()
    with without_collection():
        for index in range(WARMUP + MOST):
            pair = ((sharded, step), (plain, alone))
            for model, seconds in pair if index % 2 == 0 else reversed(pair):
                model.zero_grad()
                group.barrier()
                seconds.append(group.seconds(partial(_pass, model, batch)))
            # One clock for all, so that all stop together.
            (spent,) = group.maxima([time.monotonic() - began])
            if index + 1 >= WARMUP + LEAST and spent > BUDGET_S:
                break
    return step[WARMUP:], alone[WARMUP:]


def _pass(model: nn.Module, batch: Tensor) -> None:
    model(batch).backward()
