"""The load that stands for an accelerator."""

from typing import TypeVar

import pytest
import torch

from smoke_training.probes.group import Group
from smoke_training.probes.storage import loader
from smoke_training.runtime import host

T = TypeVar("T")


class Alone(Group):
    """One of `ranks` ranks of one node, with a GPU."""

    def __init__(self, ranks: int) -> None:
        super().__init__(
            rank=0, world=ranks, local_rank=0, node=0, device=torch.device("cuda", 0), backend="nccl"
        )

    def gather(self, item: T) -> list[T]:
        return [item] * self.world


@pytest.mark.parametrize(("cpus", "ranks", "workers"), [(16, 1, 8), (16, 4, 4), (192, 8, 8), (4, 4, 2)])
def test_an_accelerator_is_fed_by_as_many_workers_as_its_load_was_published_with(
    cpus: int, ranks: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(host, "usable_cpus", lambda: cpus)
    chosen = loader.load(Alone(ranks))
    assert (chosen.workers, chosen.samples, chosen.compute_s) == (workers, 40, 0.0224)
