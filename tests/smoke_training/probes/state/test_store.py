import errno
import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch._C._distributed_c10d import HashStore

from smoke_training import checkpoint_files
from smoke_training.probes.group import Group
from smoke_training.probes.state import store
from smoke_training.probes.state.replica import EPOCH_BATCHES, BatchStream, TrainingReplica
from smoke_training.probes.state.store import CheckpointStore, TornCheckpointError, differences
from smoke_training.probes.state.timing import MIB, ShardedTraining

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def alone() -> Iterator[Group]:
    """A process group of this process."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield Group(rank=0, world=1, local_rank=0, node=0, device=CPU, backend="gloo")
    dist.destroy_process_group()


def ran(group: Group, seed: int, steps: int = 0) -> TrainingReplica:
    """A replica after some steps."""
    torch.manual_seed(seed)
    random.seed(seed)
    replica = TrainingReplica(group, seed)
    advance(replica, steps)
    return replica


def advance(replica: TrainingReplica, steps: int) -> list[str]:
    return [replica.train() for _ in range(steps)]


PARTS = [
    "model/head.weight", "optimizer/0/exp_avg", "scheduler", "rng/torch", "rng/python", "step",
    "loader/epoch", "loader/position", "loader/order", "loader/generator",
]  # fmt: skip


@pytest.mark.parametrize("entry", PARTS)
def test_every_part_of_the_state_counts(alone: Group, entry: str) -> None:
    run = ran(alone, 7, 2)
    whole, other = store.manifest(run.snapshot()), run.snapshot()
    value = other[entry]
    if isinstance(value, torch.Tensor):
        other[entry] = value.flip(0).neg() if value.is_floating_point() else value.flip(0)
    else:
        other[entry] = value + (1 if isinstance(value, int) else " ")
    assert differences(whole, store.manifest(other)) == [entry]
    del other[entry]
    assert differences(whole, store.manifest(other)) == [entry]


@pytest.mark.parametrize(
    "entry", ["scheduler", "rng/torch", "rng/python", "loader/generator", "loader/position"]
)
def test_a_restore_that_forgets_a_part_is_seen_in_the_next_losses(alone: Group, entry: str) -> None:
    run = ran(alone, 7, 4)
    saved = run.snapshot()
    expected = advance(run, 5)
    run.load(saved)
    assert advance(run, 5) == expected
    forgotten = ran(alone, 7, EPOCH_BATCHES + 2).snapshot()[entry]
    run.load({**saved, entry: forgotten})
    assert advance(run, 5) != expected


def test_the_loader_gives_every_batch_of_an_epoch_once_and_epochs_in_other_orders() -> None:
    loader = BatchStream(3)
    epochs = [[loader.next() - epoch * EPOCH_BATCHES for _ in range(EPOCH_BATCHES)] for epoch in range(4)]
    assert all(sorted(epoch) == list(range(EPOCH_BATCHES)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def saved(group: Group, root: Path, *steps: int) -> CheckpointStore:
    run, kept = ran(group, 1, 1), CheckpointStore(group, root, "resume")
    for step in steps:
        run.step = step
        kept.save(run.snapshot(), step)
    return kept


@pytest.mark.parametrize("steps", [3, EPOCH_BATCHES, EPOCH_BATCHES + 1])
def test_a_restored_run_goes_on_bit_for_bit(alone: Group, tmp_path: Path, steps: int) -> None:
    run, kept = ran(alone, 7, steps), CheckpointStore(alone, tmp_path, "resume")
    kept.save(run.snapshot(), steps)
    expected = advance(run, 2 * EPOCH_BATCHES)
    after = store.manifest(run.snapshot())
    other, state = ran(alone, 7, 1), store.own_state(checkpoint_files.step_folder(tmp_path, steps))
    kept.restore(steps, state)
    other.load(state)
    assert advance(other, 2 * EPOCH_BATCHES) == expected
    assert differences(after, store.manifest(other.snapshot())) == []


def test_sharded_training_goes_on_bit_for_bit_from_a_checkpoint_and_not_from_a_torn_one(
    alone: Group, tmp_path: Path
) -> None:
    run, kept = ShardedTraining(alone, MIB, seed=1), CheckpointStore(alone, tmp_path, "checkpoint")
    run.step()
    saved = store.manifest(run.snapshot())
    kept.save(run.snapshot(), 4)
    # Nodes may have a folder each: what is no shard must be in every rank's own files.
    assert {name for name, v in run.snapshot().items() if not hasattr(v, "to_local")} == {
        name for name in saved if name.startswith("rank-0/")
    }
    other = ShardedTraining(alone, MIB, seed=2)
    room = other.snapshot()
    assert {name for name in saved if name.endswith("weight.exp_avg")} <= set(
        differences(saved, store.manifest(room))
    )
    kept.restore(4, room)
    other.load(room)
    assert differences(saved, store.manifest(other.snapshot())) == []
    for training in (run, other):
        training.step()
    after = store.manifest(run.snapshot())
    assert differences(after, store.manifest(other.snapshot())) == []
    assert differences(saved, after) != []
    folder = checkpoint_files.step_folder(tmp_path, 4)
    store.TEARS["one flipped bit"](folder, store.shards(folder, 0)[0], folder / checkpoint_files.mark_name(0))
    with pytest.raises(TornCheckpointError, match=r"__0_0\.distcp differs"):
        kept.restore(4, room)


def test_every_way_of_tearing_a_checkpoint_is_refused(alone: Group, tmp_path: Path) -> None:
    offered, accepted = saved(alone, tmp_path / "kept", 8).torn(8, tmp_path / "room")
    assert len(offered) == 7
    assert accepted == ()


@pytest.mark.parametrize("tear", store.TEARS)
def test_a_torn_checkpoint_is_said_to_be_torn(alone: Group, tmp_path: Path, tear: str) -> None:
    kept = saved(alone, tmp_path, 4, 8)
    folder = checkpoint_files.step_folder(tmp_path, 8)
    store.TEARS[tear](folder, store.shards(folder, 0)[0], folder / checkpoint_files.mark_name(0))
    with pytest.raises(TornCheckpointError, match="step-00000008"):
        kept.restore(8, {})
    assert store.inspect(tmp_path, 8, alone).fault is not None
    assert store.inspect(tmp_path, 4, alone).fault is None
    assert checkpoint_files.steps(tmp_path) == [4, 8]


def test_a_checkpoint_replaced_by_another_whole_one_is_not_the_one_committed(
    alone: Group, tmp_path: Path
) -> None:
    saved(alone, tmp_path, 4, 8)
    promised = checkpoint_files.mark_in(checkpoint_files.step_folder(tmp_path, 8))
    shutil.rmtree(checkpoint_files.step_folder(tmp_path, 8))
    shutil.copytree(checkpoint_files.step_folder(tmp_path, 4), checkpoint_files.step_folder(tmp_path, 8))
    assert store.inspect(tmp_path, 8, alone).fault is None
    assert "committed bytes" in (store.inspect(tmp_path, 8, alone, promised).fault or "")


def test_half_a_mark_is_none_and_another_nodes_mark_will_do(tmp_path: Path) -> None:
    for node in (0, 1):
        (tmp_path / checkpoint_files.mark_name(node)).write_text('{"files": {"__0_0.distcp": "aa"}}')
    os.truncate(tmp_path / checkpoint_files.mark_name(0), 20)
    assert checkpoint_files.mark_in(tmp_path) == {"__0_0.distcp": "aa"}
    (tmp_path / checkpoint_files.mark_name(1)).unlink()
    assert checkpoint_files.mark_in(tmp_path) is None


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_full_disk_leaves_no_trace_and_the_checkpoint_before_whole(
    alone: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    kept, calls, real = saved(alone, tmp_path, 4), [0], os.fsync

    def fsync(file: int) -> None:
        calls[0] += 1
        if calls[0] == fails_at:  # DCP fsyncs the file and the metadata, then comes the mark
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(store.CheckpointWriteError) as refused:
        kept.save(ran(alone, 1, 1).snapshot(), 8)
    monkeypatch.undo()
    (item,) = refused.value.refused
    assert (item.errno, item.phase, item.previous_complete, item.left_behind) == (
        "ENOSPC",
        "resume",
        True,
        (),
    )
    assert store.leftovers(tmp_path) == []
    assert checkpoint_files.steps(tmp_path) == [4]
    assert store.inspect(tmp_path, 4, alone).fault is None


def test_what_cannot_be_read_is_not_called_torn(alone: Group, tmp_path: Path) -> None:
    saved(alone, tmp_path, 4)
    (shard,) = store.shards(checkpoint_files.step_folder(tmp_path, 4), 0)
    shard.unlink()
    shard.mkdir()  # reading a folder fails for root as well, which permissions would not
    found = store.inspect(tmp_path, 4, alone)
    assert not found.readable
    assert str(shard) in (found.fault or "")


@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=2)),
    st.dictionaries(st.text(max_size=3), st.text(max_size=2)),
)
def test_differences_are_symmetric_and_empty_only_for_equal_manifests(
    left: dict[str, str], right: dict[str, str]
) -> None:
    assert differences(left, right) == differences(right, left)
    assert (differences(left, right) == []) == (left == right)


def test_equal_bytes_of_another_shape_or_type_are_another_entry() -> None:
    same = torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32)
    assert len({store.manifest({"x": value})["x"] for value in same}) == 3


def test_digests_need_no_numpy_and_are_those_of_the_raw_bytes() -> None:
    kinds = ["torch.float32", "torch.bfloat16", "torch.int64", "torch.uint8", "torch.bool"]
    state = f"[*(torch.arange(6).reshape(2, 3).t().to(k) for k in ({', '.join(kinds)})), torch.empty(0)]"
    program = "import sys; sys.modules['numpy'] = None; import torch\n"
    program += "from smoke_training.probes.state import store\n"
    program += f"print(*store.manifest(dict(enumerate({state}))).values())"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, stdout=subprocess.PIPE)
    expected = []
    for value in eval(state):
        raw = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        head = f"{value.dtype}|{','.join(map(str, value.shape))}|"
        expected.append(hashlib.sha256(head.encode() + raw).hexdigest())
    assert done.stdout.decode().split() == expected
