"""Loss parity: N ranks and one rank see the same global batch and must report the same losses."""

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from smoke_training.evidence import Record
from smoke_training.evidence.training import Parity
from smoke_training.probes.context import Context
from smoke_training.probes.training import transformer
from smoke_training.probes.training.numerics import Watch

STEPS = 20
LEARNING_RATE = 0.05


def measure(context: Context) -> Iterator[Record]:
    """The `parity` evidence in float64: mean loss of N ranks and loss of one rank with all batches."""
    group, seed, size = context.group, context.plan.seed, transformer.PARITY
    many_model = DistributedDataParallel(transformer.build(size, seed, group.device, torch.float64))
    one_model = transformer.build(size, seed, group.device, torch.float64)
    many_optimizer = torch.optim.SGD(many_model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    one_optimizer = torch.optim.SGD(one_model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    many, one = [], []
    with Watch(many_model, group) as watch:
        for step in range(STEPS):
            parts = [
                transformer.tokens(size, seed, step * group.world + rank, group.device)
                for rank in range(group.world)
            ]
            loss = train(many_model, many_optimizer, parts[group.rank])
            watch.checksum()
            group.beat()
            dist.all_reduce(loss)
            many.append(float(loss) / group.world)
            one.append(float(train(one_model, one_optimizer, torch.cat(parts))))
    yield Parity(dtype="float64", many=tuple(many), one=tuple(one))
    yield watch.evidence("parity")


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> torch.Tensor:
    """One step; a copy of its loss, a scalar. The gradients stay until the next step."""
    optimizer.zero_grad()
    loss: torch.Tensor = model(batch)
    torch.autograd.backward(loss)
    optimizer.step()
    return loss.detach().clone()
