import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from smoke_training import files
from smoke_training.probes.group import Group
from smoke_training.probes.storage import throughput as storage
from smoke_training.probes.storage.disk import CHUNK, BlockFile, Refusals, forgotten, resident_share


def test_blocks_are_written_in_place_and_read_back(tmp_path: Path) -> None:
    file = BlockFile(tmp_path / "new" / "blocks", 3)
    for index in range(5):
        file.write(index, 2 * CHUNK)
    assert file.path.stat().st_size == 3 * 2 * CHUNK
    before = file.path.read_bytes()
    file.write(4, 2 * CHUNK)  # the same region, other contents than index 1 left there
    assert file.path.read_bytes() == before
    file.write(7, 2 * CHUNK)
    assert file.path.read_bytes() != before
    file.read(0, 6 * CHUNK)
    with pytest.raises(OSError, match="ends early"):
        file.read(0, 7 * CHUNK)
    file.close()
    assert not file.path.exists()


def test_what_is_cached_is_seen_and_dropped_pages_are_gone(tmp_path: Path) -> None:
    file = BlockFile(tmp_path / "blocks", 1)
    file.write(0, 8 * CHUNK)
    with file.path.open("rb") as seen:
        if resident_share(seen.fileno()) is None:
            pytest.skip("this kernel does not say what is cached")
        assert resident_share(seen.fileno()) == 1.0
        file.drop_cache()
        cold = resident_share(seen.fileno())
        assert cold is not None
        if cold > 0.5:
            pytest.skip("this file system keeps unused pages, like tmpfs")
        assert cold < 0.05
        file.read(0, 8 * CHUNK)
        assert resident_share(seen.fileno()) == 1.0
        shares = forgotten([file.path])
        assert shares is not None
        assert shares[0] < 0.05
    file.close()


def test_an_empty_file_has_no_share(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    file = os.open(tmp_path / "empty", os.O_RDWR)
    assert resident_share(file) is None
    os.close(file)


def test_a_refusal_names_path_reason_and_bytes(tmp_path: Path) -> None:
    group = Group(rank=2, world=3, local_rank=0, node=1, device=torch.device("cpu"), backend="gloo")
    refusals = Refusals(group, "storage", "scratch")
    with refusals.collected("write", tmp_path / "x", 1000):
        Path("/dev/full").write_bytes(b"x")
    (item,) = refusals.own
    assert (item.errno, item.operation, item.bytes_wanted) == ("ENOSPC", "write", 1000)
    assert item.bytes_free is not None
    assert (item.name, item.rank, item.node, item.path) == ("scratch", 2, 1, str(tmp_path / "x"))
    refusals.add(OSError("odd"), "read", tmp_path / "no" / "where")
    assert refusals.own[1].errno == "OSError"


def test_only_old_leftovers_of_this_program_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    for name, age in ((f"{storage.PREFIX}old", 90000), (f"{storage.PREFIX}new", 10), ("theirs", 90000)):
        (tmp_path / name / "in").mkdir(parents=True)
        os.utime(tmp_path / name, (now - age, now - age))
    monkeypatch.setattr(
        time, "time", lambda: now + 10 * files.LEFTOVERS_S
    )  # another clock than the storage's
    files.sweep(tmp_path, storage.PREFIX)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{storage.PREFIX}new", "theirs"]


def test_a_folder_whose_run_was_killed_goes_at_once_and_one_that_is_held_stays(tmp_path: Path) -> None:
    mine, left, new = (tmp_path / f"smoke-{name}" for name in ("mine", "left", "new"))
    for folder in (mine, left, new):
        folder.mkdir()
    program = "import os, pathlib, sys; from smoke_training import files; "
    program += "files.hold(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, str(left)], check=False)
    descriptor, long_ago = files.hold(mine), time.time() - 2 * files.UNHELD_S
    for folder in (mine, left):
        os.utime(folder, (long_ago, long_ago))
    files.sweep(tmp_path, "smoke-")  # on storage: judged by age only
    assert left.exists()
    files.sweep(tmp_path, "smoke-", held=True)
    assert [folder.exists() for folder in (mine, left, new)] == [True, False, True]
    os.utime(mine, (0, 0))  # as after a jump of the clock
    files.sweep(tmp_path, "smoke-", held=True)
    assert mine.exists()
    os.close(descriptor)
    files.sweep(tmp_path, "smoke-", held=True)
    assert [folder.exists() for folder in (mine, new)] == [False, True]
