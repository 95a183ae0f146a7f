"""The product that every GPU multiplies, on a CPU and small."""

from typing import TypeVar

import torch

from smoke_training.probes.group import Group
from smoke_training.probes.training import gpus

T = TypeVar("T")


class OneRank(Group):
    """A rank without peers."""

    def gather(self, item: T) -> list[T]:
        return [item]

    def barrier(self) -> None:
        pass


def test_one_product_has_the_same_bits_in_every_block() -> None:
    cpu = torch.device("cpu")
    alone = OneRank(rank=0, world=1, local_rank=0, node=0, device=cpu, backend="gloo")
    found = gpus.burn(alone, size=64, products=2, budget_s=0.05)
    assert len(found.bits[0]) == len(found.seconds[0]) > 1
    assert len(set(found.bits[0])) == 1
    again = gpus.burn(alone, size=64, products=1, budget_s=0.0)  # at least one block, however little time
    assert again.bits[0] == found.bits[0][:1]
    assert (found.states, found.size, found.products) == ((None,), 64, 2)
