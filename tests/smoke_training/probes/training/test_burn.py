"""The product that every GPU multiplies, and the sustained work, on a CPU and small."""

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import torch
from torch import Tensor

from smoke_training import plan as plans
from smoke_training.evidence.gpus import Burn
from smoke_training.judges.sampling import VerdictSampling
from smoke_training.phases import BURN
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.training import burn, gpus

T = TypeVar("T")


class OneRank(Group):
    """A rank without peers."""

    def gather(self, item: T) -> list[T]:
        return [item]

    def barrier(self) -> None:
        pass


CPU = torch.device("cpu")
ALONE = OneRank(rank=0, world=1, local_rank=0, node=0, device=CPU, backend="gloo")


def burnt(scratch: Path, seconds: float) -> list[Burn]:
    """The records of a burn of one rank."""
    plan = replace(plans.local_plan(1, BURN, None, 60.0), burn_s=seconds)
    context = ProbeContext(group=ALONE, plan=plan, scratch=scratch, sampling=VerdictSampling(plan))
    return [item for item in burn.measure(context) if isinstance(item, Burn)]


def test_a_burn_leaves_a_record_of_every_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burn, "FILES_S", 0.02)
    monkeypatch.setattr(burn, "WINDOWS", 4)
    monkeypatch.setattr(burn, "SIZE_CPU", 32)
    found = burnt(tmp_path, 0.4)
    assert [len(item.rates[0]) for item in found] == list(range(1, len(found) + 1))
    last = found[-1]
    assert last.seconds >= last.planned_s == 0.4
    assert (last.wrong, last.nodes) == ((0,), (0,))
    assert last.steps[0] % burn.STEPS == 0
    assert all(rate and rate > 0 for (rate,) in (*last.copies.values(), *last.files.values()))
    assert set(last.copies) == {"memory", "to_device", "to_host", "to_peer"}
    assert {kind.partition(".")[2] for kind in last.files} == {"reads", "writes", "creations", "removals"}
    assert list(tmp_path.iterdir()) == []


def test_a_fault_in_one_of_150_steps_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, healthy = iter(range(10**9)), burn.RedundantSteps.step

    def faulty(bench: burn.RedundantSteps, matrix: Tensor) -> Tensor:
        result = healthy(bench, matrix)
        if next(steps) % 150 == 149:
            result.view(torch.int32)[7, 7] ^= 1  # one bit of one element
        return result

    monkeypatch.setattr(burn, "FILES_S", 0.02)
    monkeypatch.setattr(burn, "SIZE_CPU", 32)
    monkeypatch.setattr(burn.RedundantSteps, "step", faulty)
    last = burnt(tmp_path, 30.0)[-1]  # ends with the window that has the fault
    assert sum(last.wrong) > 0
    assert last.seconds < 29


def test_one_product_has_the_same_bits_in_every_block() -> None:
    found = gpus.burn(ALONE, size=64, products=2, budget_s=0.05)
    assert len(found.bits[0]) == len(found.seconds[0]) > 1
    assert len(set(found.bits[0])) == 1
    again = gpus.burn(ALONE, size=64, products=1, budget_s=0.0)  # at least one block, however little time
    assert again.bits[0] == found.bits[0][:1]
    assert (found.states, found.size, found.products) == ((None,), 64, 2)
