"""Checkpoints are committed, pruned and proven on a real file system; half of one counts for nothing."""

import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._C._distributed_c10d import HashStore

import smoke_training
from smoke_training.checkpoint_files import step_folder
from smoke_training.instrumentation import Retention, checkpoint_keeper
from smoke_training.instrumentation.checkpoints import begin, commit, damaged, prune, whole
from smoke_training.instrumentation.peers import Peers


def write(root: Path, step: int, at: float | None = None, text: str = "weights") -> Path:
    """A checkpoint of two files; without a time it is not committed."""
    folder = begin(root, step)
    (folder / "model.pt").write_text(f"{text} {step}")
    (folder / "optimizer").mkdir(exist_ok=True)
    (folder / "optimizer" / "part.pt").write_text("moments" * step)
    if at is not None:
        commit(root, step, lambda: at)
    return folder


def test_every_checkpoint_that_stays_restores_as_it_was_written(tmp_path: Path) -> None:
    for step in range(1, 11):
        write(tmp_path, step, at=step * 1800.0)
    assert prune(tmp_path, Retention(keep_last=3, keep_every_s=7200.0)) == [2, 3, 5, 6, 7]
    assert list(whole(tmp_path)) == [1, 4, 8, 9, 10]
    assert [damaged(tmp_path, step) for step in whole(tmp_path)] == [[]] * 5
    assert (step_folder(tmp_path, 9) / "model.pt").read_text() == "weights 9"


def test_a_half_written_checkpoint_is_none_and_costs_no_whole_one_its_place(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step, at=float(step))
    write(tmp_path, 4)
    assert prune(tmp_path, Retention(keep_last=2)) == [1]
    assert list(whole(tmp_path)) == [2, 3]
    # It may be what another rank is writing at this moment.
    assert step_folder(tmp_path, 4).is_dir()


@pytest.mark.parametrize("tear", ["no file", "half a file", "no mark", "half a mark"])
def test_a_damaged_newest_one_does_not_push_out_the_last_that_restores(tmp_path: Path, tear: str) -> None:
    write(tmp_path, 1, at=1.0)
    newest = write(tmp_path, 2, at=2.0)
    mark, file = newest / "commit-node-0.json", newest / "optimizer" / "part.pt"
    if tear in {"no file", "no mark"}:
        (file if tear == "no file" else mark).unlink()
    else:
        os.truncate(file if tear == "half a file" else mark, 5)
    assert prune(tmp_path, Retention(keep_last=1)) == []
    assert damaged(tmp_path, 1) == []
    assert damaged(tmp_path, 2) != []


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    file = write(tmp_path, 1, at=1.0) / "model.pt"
    raw = bytearray(file.read_bytes())
    raw[0] ^= 1
    file.write_bytes(raw)
    assert damaged(tmp_path, 1) == ["model.pt"]


def test_a_step_that_is_written_again_is_no_checkpoint_until_it_is_whole(tmp_path: Path) -> None:
    write(tmp_path, 1, at=1.0)
    write(tmp_path, 2, at=2.0)
    folder = begin(tmp_path, 2)
    assert list(whole(tmp_path)) == [1]
    (folder / "model.pt").write_text("other")
    commit(tmp_path, 2, lambda: 3.0)
    assert damaged(tmp_path, 2) == [] and whole(tmp_path) == {1: 1.0, 2: 3.0}


def test_nothing_is_committed_where_nothing_was_written(tmp_path: Path) -> None:
    begin(tmp_path, 1)
    with pytest.raises(FileNotFoundError, match="step-00000001"):
        commit(tmp_path, 1)


def test_a_deletion_that_was_cut_off_leaves_no_checkpoint_and_is_finished_later(tmp_path: Path) -> None:
    for step in (1, 2):
        write(tmp_path, step, at=float(step))
    step_folder(tmp_path, 1).rename(tmp_path / ".removed-step-00000001")
    assert list(whole(tmp_path)) == [2]
    assert prune(tmp_path, Retention(keep_last=5)) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000002"]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=12, unique_by=lambda each: each[0]),
    st.integers(1, 4),
)
def test_whatever_was_written_the_newest_whole_one_stays(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[int, bool]], last: int
) -> None:
    root = tmp_path_factory.mktemp("checkpoints")
    for step, is_whole in written:
        write(root, step, at=float(step) if is_whole else None)
    complete = sorted(step for step, is_whole in written if is_whole)
    prune(root, Retention(keep_last=last))
    assert list(whole(root)) == complete[-last:]
    assert all(damaged(root, step) == [] for step in complete[-last:])


def test_a_loop_commits_announces_and_prunes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[float] = []
    monkeypatch.setattr(checkpoint_keeper, "announce", said.append)
    model = nn.Linear(2, 1)
    batches = [torch.ones(4, 2)] * 6
    with smoke_training.instrument(model, None, batches, keep=Retention(keep_last=2)) as run:
        for batch in run.batches():
            model(batch).mean().backward()
            with run.saving(tmp_path) as folder:
                torch.save(model.state_dict(), folder / "model.pt")
    assert run.problems == []
    assert whole(tmp_path).keys() == {5, 6}
    assert len(said) == 6 and said == sorted(said) and said[-1] == whole(tmp_path)[6]
    restored = torch.load(step_folder(tmp_path, 6) / "model.pt", weights_only=True)
    assert torch.equal(restored["weight"], model.weight)


def test_a_checkpoint_that_raised_is_none(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with smoke_training.instrument(model, None, [torch.ones(1, 2)]) as run:
        for _ in run.batches():
            with pytest.raises(OSError, match="full"), run.saving(tmp_path) as folder:
                (folder / "model.pt").write_text("half")
                raise OSError("disk full")
    assert whole(tmp_path) == {} and run.problems == []


class Rank(Peers):
    """One of two ranks that meet in a store of this process."""

    def __init__(self, rank: int, store: HashStore) -> None:
        self.rank, self.world, self._store = rank, 2, store


def test_a_checkpoint_is_whole_once_every_rank_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = HashStore()
    kept = []
    for rank in (0, 1):
        monkeypatch.setattr(checkpoint_keeper, "Peers", partial(Rank, rank, store))
        kept.append(checkpoint_keeper.CheckpointKeeper(Retention(keep_last=1), pytest.fail))
    first, second = kept
    write(tmp_path, 7)
    first.written(tmp_path, 7)
    time.sleep(0.5)
    assert whole(tmp_path) == {}
    (step_folder(tmp_path, 7) / "of-rank-1.pt").write_text("late")
    second.written(tmp_path, 7)
    first.stop(failed=False)
    assert whole(tmp_path).keys() == {7} and damaged(tmp_path, 7) == []


def test_a_rank_that_is_gone_holds_up_the_end_of_a_failed_run_only_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_keeper, "Peers", partial(Rank, 0, HashStore()))
    monkeypatch.setattr(checkpoint_keeper, "FAILED_S", 0.5)
    problems: list[str] = []
    alone = checkpoint_keeper.CheckpointKeeper(Retention(keep_last=1), problems.append)
    write(tmp_path, 7)
    alone.written(tmp_path, 7)
    alone.stop(failed=True)
    for thread in [each for each in threading.enumerate() if each.name == "checkpoint-keeper"]:
        thread.join(60)  # inside of torch it would abort the interpreter's end
        assert not thread.is_alive()
    assert whole(tmp_path) == {} and "within 0 s" in problems[0]
