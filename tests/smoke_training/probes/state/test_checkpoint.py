import errno
import os
import random
from pathlib import Path

import pytest
import torch
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

from smoke_training.manifest import differences
from smoke_training.probes.state import checkpoint, replica
from smoke_training.probes.state.replica import EPOCH_BATCHES, Loader
from smoke_training.probes.training import transformer

CPU = torch.device("cpu")


class Run:
    """What a `Replica` trains, on this process alone."""

    def __init__(self, seed: int, steps: int = 0) -> None:
        torch.manual_seed(seed)
        random.seed(seed)
        self.model = transformer.build(transformer.STATE, 1, CPU, torch.float32)
        self.optimizer = AdamW(self.model.parameters(), lr=1e-3)
        self.scheduler = CosineAnnealingWarmRestarts(self.optimizer, T_0=10)
        self.loader = Loader(seed)
        self.step = 0
        self.advance(steps)

    def advance(self, steps: int) -> list[str]:
        losses = []
        for _ in range(steps):
            number, draw = self.loader.next(), random.randrange(1000)
            self.loader.delivered(number, draw)
            self.optimizer.zero_grad()
            loss = self.model(transformer.tokens(transformer.STATE, draw, number, CPU))
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
            losses.append(float(loss.detach()).hex())
        return losses

    def snapshot(self) -> checkpoint.State:
        return replica.snapshot(self.model, self.optimizer, self.scheduler, self.loader, self.step)

    def load(self, state: checkpoint.State) -> None:
        replica.restore(state, self.model, self.optimizer, self.scheduler, self.loader)
        self.step = state["step"]


@pytest.mark.parametrize("steps", [3, EPOCH_BATCHES, EPOCH_BATCHES + 1])
def test_a_restored_run_goes_on_bit_for_bit(tmp_path: Path, steps: int) -> None:
    run = Run(7, steps)
    checkpoint.write(tmp_path, run.snapshot())
    expected = run.advance(2 * EPOCH_BATCHES)
    after = checkpoint.manifest(run.snapshot())
    other = Run(8, 1)
    other.load(checkpoint.read(tmp_path))
    assert other.advance(2 * EPOCH_BATCHES) == expected
    assert differences(after, checkpoint.manifest(other.snapshot())) == []


PARTS = [
    "model/head.weight", "optimizer/0/exp_avg", "scheduler", "rng/torch", "rng/python", "step",
    "loader/epoch", "loader/position", "loader/order", "loader/generator",
]  # fmt: skip


@pytest.mark.parametrize("entry", PARTS)
def test_every_part_of_the_state_counts(entry: str) -> None:
    run = Run(7, 2)
    whole, other = checkpoint.manifest(run.snapshot()), run.snapshot()
    value = other[entry]
    if isinstance(value, torch.Tensor):
        other[entry] = value.flip(0).neg() if value.is_floating_point() else value.flip(0)
    else:
        other[entry] = value + (1 if isinstance(value, int) else " ")
    assert differences(whole, checkpoint.manifest(other)) == [entry]
    del other[entry]
    assert differences(whole, checkpoint.manifest(other)) == [entry]


@pytest.mark.parametrize(
    "entry", ["scheduler", "rng/torch", "rng/python", "loader/generator", "loader/position"]
)
def test_a_restore_that_forgets_a_part_is_seen_in_the_next_losses(entry: str) -> None:
    run = Run(7, 4)
    saved = run.snapshot()
    expected = run.advance(5)
    other = Run(8, 2)
    forgotten = other.snapshot()[entry]
    other.load({**saved, entry: forgotten})
    assert other.advance(5) != expected


def test_the_loader_gives_every_batch_of_an_epoch_once_and_epochs_in_other_orders() -> None:
    loader = Loader(3)
    epochs = [[loader.next() - epoch * EPOCH_BATCHES for _ in range(EPOCH_BATCHES)] for epoch in range(4)]
    assert all(sorted(epoch) == list(range(EPOCH_BATCHES)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def saved(root: Path, *steps: int, rank: int = 0) -> dict[int, str]:
    run, digests = Run(1, 1), {}
    for step in steps:
        run.step = step
        _, digests[step] = checkpoint.write(checkpoint.folder(root, step, rank), run.snapshot())
    return digests


@pytest.mark.parametrize("tear", checkpoint.TEARS)
def test_a_torn_shard_is_refused_and_said_to_be_torn(tmp_path: Path, tear: str) -> None:
    saved(tmp_path, 4, 8)
    where = checkpoint.folder(tmp_path, 8, 0)
    checkpoint.TEARS[tear](where)
    with pytest.raises(checkpoint.TornCheckpointError, match="step-00000008/rank-0"):
        checkpoint.read(where)
    assert checkpoint.inspect(tmp_path, 8, 0).fault is not None
    assert checkpoint.inspect(tmp_path, 4, 0).fault is None
    assert checkpoint.steps(tmp_path) == [4, 8]


def test_a_shard_replaced_by_another_whole_one_is_not_the_one_committed(tmp_path: Path) -> None:
    digests = saved(tmp_path, 4, 8)
    assert checkpoint.inspect(tmp_path, 8, 0, digests[8]).fault is None
    where = checkpoint.folder(tmp_path, 8, 0)
    for name in (checkpoint.STATE, checkpoint.MANIFEST):
        (where / name).write_bytes((checkpoint.folder(tmp_path, 4, 0) / name).read_bytes())
    assert "not the one that was committed" in (checkpoint.inspect(tmp_path, 8, 0, digests[8]).fault or "")


def test_commit_marks_are_read_back_and_half_a_mark_is_none(tmp_path: Path) -> None:
    checkpoint.commit(tmp_path, 4, 0, {0: "aa", 1: "bb"})
    checkpoint.commit(tmp_path, 8, 1, {0: "cc", 1: "dd"})
    assert checkpoint.committed(tmp_path) == {4: {0: "aa", 1: "bb"}, 8: {0: "cc", 1: "dd"}}
    os.truncate(checkpoint.step_folder(tmp_path, 8) / "commit-node-1.json", 20)
    assert checkpoint.committed(tmp_path).keys() == {4}


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_full_disk_leaves_no_trace_and_the_checkpoint_before_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    saved(tmp_path, 4)
    calls, real = [0], os.fsync

    def fsync(file: int) -> None:
        calls[0] += 1
        if calls[0] == 2 * fails_at - 1:  # each durable write fsyncs the file and its folder
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space left"):
        saved(tmp_path, 8)
    monkeypatch.undo()
    assert checkpoint.leftovers(tmp_path) == []
    assert checkpoint.steps(tmp_path) == [4]
    assert checkpoint.inspect(tmp_path, 4, 0).fault is None


def test_a_full_disk_does_not_take_a_whole_shard_of_the_same_step_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, 4)

    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        saved(tmp_path, 4)
    monkeypatch.undo()
    assert checkpoint.inspect(tmp_path, 4, 0).fault is None
    assert checkpoint.leftovers(tmp_path) == []


def test_what_cannot_be_read_is_not_called_torn(tmp_path: Path) -> None:
    saved(tmp_path, 4)
    manifest = checkpoint.folder(tmp_path, 4, 0) / checkpoint.MANIFEST
    manifest.unlink()
    manifest.mkdir()  # reading a folder fails for root as well, which permissions would not
    with pytest.raises(checkpoint.UnreadableCheckpointError, match=r"manifest\.json"):
        checkpoint.read(manifest.parent)
    found = checkpoint.inspect(tmp_path, 4, 0)
    assert not found.readable
    assert str(manifest) in (found.fault or "")
