"""Loss parity: N ranks and one rank see the same global batch and must report the same losses."""

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from smoke_training.probes.context import Context, Line
from smoke_training.probes.training import transformer
from smoke_training.probes.training.numerics import Watch

STEPS = 20
LEARNING_RATE = 0.05


def measure(context: Context) -> Iterator[Line]:
    """The `parity` evidence in float64: mean loss of N ranks and loss of one rank with all batches."""
    gang, seed, size = context.gang, context.plan.seed, transformer.PARITY
    many_model = DistributedDataParallel(transformer.build(size, seed, gang.device, torch.float64))
    one_model = transformer.build(size, seed, gang.device, torch.float64)
    many_optimizer = torch.optim.SGD(many_model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    one_optimizer = torch.optim.SGD(one_model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    many, one = [], []
    with Watch(many_model) as watch:
        for step in range(STEPS):
            parts = [
                transformer.tokens(size, seed, step * gang.world + rank, gang.device)
                for rank in range(gang.world)
            ]
            loss = train(many_model, many_optimizer, parts[gang.rank])
            watch.checksum()
            gang.beat()
            dist.all_reduce(loss)
            many.append(float(loss) / gang.world)
            one.append(float(train(one_model, one_optimizer, torch.cat(parts))))
    yield {"kind": "parity", "dtype": "float64", "many": many, "one": one}
    yield from watch.lines(gang, "parity")


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> torch.Tensor:
    """One step; a copy of its loss, a scalar. The gradients stay until the next step."""
    optimizer.zero_grad()
    loss: torch.Tensor = model(batch)
    torch.autograd.backward(loss)
    optimizer.step()
    return loss.detach().clone()
