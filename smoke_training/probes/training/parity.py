"""Loss parity: N ranks and one rank see the same global batch and must report the same losses."""

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from smoke_training.evidence import Record
from smoke_training.evidence.training import Parity
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.training import transformer
from smoke_training.probes.training.numerics import GradientWatch

STEPS = 20
LEARNING_RATE = 0.05


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `parity` evidence in float64: mean loss of N ranks and loss of one rank with all batches."""
    group, seed, size = context.group, context.plan.seed, transformer.PARITY
    one, network = (transformer.build(size, seed, group.device, torch.float64) for _ in range(2))
    model = DistributedDataParallel(network)
    with GradientWatch(model, group) as watch:
        stream = transformer.stream(group, size, seed, STEPS)
        many = mean(group, train(group, model, stream, watch.checksum))
    every = [transformer.tokens(size, seed, i, group.device) for i in range(STEPS * group.world)]
    alone = train(group, one, torch.cat(every).chunk(STEPS))
    yield Parity(dtype="float64", many=many, one=tuple(alone.tolist()), tokens=size.tokens)
    yield watch.evidence("parity")


def train(
    group: Group, model: nn.Module, batches: Iterable[Tensor], after: Callable[[], None] = lambda: None
) -> Tensor:
    """Train one step per batch by SGD, with a call after each; this rank's loss of every step, a vector."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss: Tensor = model(batch)
        torch.autograd.backward(loss)
        optimizer.step()
        after()
        group.beat()
        losses.append(loss.detach().clone())
    optimizer.zero_grad()
    return torch.stack(losses)


def mean(group: Group, losses: Tensor) -> tuple[float, ...]:
    """The mean over ranks of every loss."""
    dist.all_reduce(losses)
    return tuple(loss / group.world for loss in losses.tolist())
