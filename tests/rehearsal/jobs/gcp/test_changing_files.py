"""Files that a script deletes, extends or rewrites while they are stored."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agents.managed_job.gcp.folders import BucketFolders, local
from agents.managed_job.gcp.mirror import BucketMirror
from smoke_training.record.gcp.api import authorization
from tests.rehearsal.jobs.gcp.conftest import Project
from tests.rehearsal.jobs.gcp.test_folder_rights import ALONE, OWN, RUNS, copied, limited, stored

__all__ = ["limited"]
During = Callable[[Callable[[], None]], None]


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> During:
    """Make a script act once before each upload begins, when its file has been read."""

    def acts(act: Callable[[], None]) -> None:
        def authorized(timeout_s: float) -> Mapping[str, str]:
            act()
            return authorization(timeout_s)

        monkeypatch.setattr("agents.managed_job.gcp.objects.authorization", authorized)

    return acts


def _folder(mirror: BucketMirror, files: Mapping[str, str]) -> Path:
    """The folder of a mirror with files, the oldest first."""
    mirror.folder.mkdir()
    for age, (name, text) in enumerate(files.items()):
        (mirror.folder / name).write_text(text)
        os.utime(mirror.folder / name, (1000 + age, 1000 + age))
    return mirror.folder


def test_files_that_a_script_rotates_away_keep_no_other_file_from_its_object(
    limited: Project, tmp_path: Path, during: During
) -> None:
    found = copied(limited, tmp_path / "folder")
    folder = _folder(found, {"log.2": "two", "log.1": "one", "log": "zero"})
    during(lambda: (folder / "log.1").unlink(missing_ok=True))
    found.save(all_of_it=False)
    assert stored(limited) == {"log.2": "two", "log": "zero"}


def test_a_file_that_is_replaced_while_it_is_stored_is_stored_as_it_was(
    limited: Project, tmp_path: Path, during: During
) -> None:
    found = copied(limited, tmp_path / "folder")
    path = _folder(found, {"last.pt": "old"}) / "last.pt"

    def replace() -> None:
        (tmp_path / "new").write_text("newer")
        (tmp_path / "new").replace(path)

    during(replace)
    assert found.save(all_of_it=False) == [] and stored(limited) == {"last.pt": "old"}
    found.save(all_of_it=True)
    assert stored(limited) == {"last.pt": "newer"}


def test_a_file_that_grows_while_it_is_stored_is_stored_as_long_as_it_was(
    limited: Project, tmp_path: Path, during: During
) -> None:
    found = copied(limited, tmp_path / "folder")
    path = _folder(found, {"events": "1\n"}) / "events"

    def grow() -> None:
        with path.open("a") as file:
            file.write("more\n")

    during(grow)
    found.save(all_of_it=True)
    assert stored(limited) == {"events": "1\n"}
    found.save(all_of_it=True)
    assert stored(limited) == {"events": "1\nmore\n"}


def test_a_commit_mark_waits_for_a_checkpoint_that_is_rewritten(
    limited: Project, tmp_path: Path, during: During
) -> None:
    found = copied(limited, tmp_path / "folder")
    folder = _folder(found, {"weights": "old", "mark": "1"})
    during(lambda: None if (folder / "weights").read_text() == "new" else _rewrite(folder / "weights", "new"))
    assert found.save(all_of_it=False) == ["weights"] and "mark" not in stored(limited)
    os.utime(folder / "weights", (2000, 2000))
    assert found.save(all_of_it=False) == [] and stored(limited) == {"weights": "new", "mark": "1"}


def _rewrite(path: Path, text: str) -> None:
    with path.open("r+") as file:  # the same file, unlike one that is replaced
        file.write(text)
        file.truncate()


@pytest.mark.parametrize("times", [1, 10**6])
def test_a_child_that_still_writes_does_not_fail_a_finished_job(
    limited: Project, during: During, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    folders, lines = local(), list[str]()
    environment = {"CLUSTER_SPEC": json.dumps(ALONE), "AIP_MODEL_DIR": f"gs://{RUNS}/{OWN}/one/model/"}
    monkeypatch.setattr("agents.managed_job.gcp.folders.AGAIN_S", 0.01)
    numbers = iter(range(1, times + 1))

    def write() -> None:
        if number := next(numbers, 0):
            _rewrite(folders.model / "status", f"at {number}")

    with BucketFolders(environment, folders, lines.append) as copies:
        copies.restore()
        folders.model.mkdir(parents=True)
        for name, text in (("status", "at 0"), ("model.pt", "trained")):
            (folders.model / name).write_text(text)
        during(write)
    there = stored(limited)
    assert there.keys() == {"model/status", "model/model.pt"} and there["model/model.pt"] == "trained"
    assert bool(lines) == (times > 1)
