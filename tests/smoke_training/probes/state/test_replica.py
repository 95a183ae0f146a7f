"""Data of the replica of the kill and resume."""

import dataclasses
import os

import pytest
import torch
import torch.distributed as dist

from smoke_training.probes.group import Group
from smoke_training.probes.state import replica

CPU = Group(rank=0, world=2, local_rank=0, node=0, device=torch.device("cpu"), backend="gloo")


def test_accelerators_reduce_by_rings_where_bits_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pin stands before the communicator is made, which reads it."""
    made = []

    def new_group(**wishes: object) -> None:
        made.append((os.environ["NCCL_ALGO"], wishes))

    monkeypatch.setattr(dist, "new_group", new_group)
    monkeypatch.setenv("NCCL_ALGO", "NVLS")
    monkeypatch.setenv("SMOKE_GROUP_TIMEOUT", "90")
    assert replica.repeatable_group(CPU) is None
    assert made == []
    cuda = dataclasses.replace(CPU, device=torch.device("cuda", 0), backend="nccl")
    replica.repeatable_group(cuda)
    ((algorithm, wishes),) = made
    assert algorithm == "Ring"
    assert str(wishes["timeout"]) == "0:01:30"
