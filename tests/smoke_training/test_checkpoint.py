from pathlib import Path

import pytest
import torch

from smoke_training.manifest import differences, newest_common
from smoke_training.probes import checkpoint, transformer

CPU = torch.device("cpu")


def trained(steps: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = transformer.build(transformer.STATE, 1, CPU, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    advance(model, optimizer, range(steps))
    return model, optimizer


def advance(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[str]:
    losses = []
    for step in steps:
        optimizer.zero_grad()
        loss = model(transformer.tokens(transformer.STATE, 1, step, CPU))
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()).hex())
    return losses


def test_a_restored_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    model, optimizer = trained(3)
    checkpoint.write(tmp_path, checkpoint.snapshot(model, optimizer, 3, 6))
    expected = advance(model, optimizer, range(3, 8))
    other, fresh = trained(1)
    assert checkpoint.restore(checkpoint.read(tmp_path), other, fresh) == (3, 6)
    assert advance(other, fresh, range(3, 8)) == expected


@pytest.mark.parametrize(
    "entry", ["model/head.weight", "optimizer/0/exp_avg", "rng/torch", "data/position", "step"]
)
def test_every_part_of_the_state_counts(entry: str) -> None:
    model, optimizer = trained(2)
    whole = checkpoint.manifest(checkpoint.snapshot(model, optimizer, 2, 4))
    other = checkpoint.snapshot(model, optimizer, 2, 4)
    value = other[entry]
    other[entry] = (
        value + 1
        if isinstance(value, int)
        else value.flip(0).neg()
        if value.is_floating_point()
        else value.flip(0)
    )
    assert differences(whole, checkpoint.manifest(other)) == [entry]
    del other[entry]
    assert differences(whole, checkpoint.manifest(other)) == [entry]


@pytest.mark.parametrize("tear", checkpoint.TEARS)
def test_a_torn_checkpoint_is_refused_and_the_previous_complete_one_is_used(
    tmp_path: Path, tear: str
) -> None:
    model, optimizer = trained(1)
    for step in (4, 8):
        checkpoint.write(
            checkpoint.folder(tmp_path, step, 0), checkpoint.snapshot(model, optimizer, step, step)
        )
    assert checkpoint.complete_steps(tmp_path, 0) == [4, 8]
    checkpoint.TEARS[tear](checkpoint.folder(tmp_path, 8, 0))
    with pytest.raises(checkpoint.TornCheckpointError, match="rank-0"):
        checkpoint.read(checkpoint.folder(tmp_path, 8, 0))
    assert checkpoint.complete_steps(tmp_path, 0) == [4]


def test_a_write_cut_short_leaves_no_checkpoint(tmp_path: Path) -> None:
    model, optimizer = trained(1)
    where = checkpoint.folder(tmp_path, 4, 0)
    checkpoint.write(where, checkpoint.snapshot(model, optimizer, 4, 4))
    (where / "manifest.json").rename(
        where / ".manifest.json.123"
    )  # killed before the commit mark got its name
    assert checkpoint.complete_steps(tmp_path, 0) == []


def test_ranks_resume_from_the_newest_step_that_all_of_them_have() -> None:
    assert newest_common([[4, 8], [4, 8, 12], [8, 4]]) == 8
    assert newest_common([[4], [8]]) is None
    assert newest_common([]) is None
