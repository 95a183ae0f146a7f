"""Files of a folder that a run takes, and refusals before anything is read or sent."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from infra.errors import UserError
from infra.jobs.packing import folder as folders
from infra.jobs.packing import pack as packs
from infra.jobs.packing.pack import CodePack, pack


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "finetune"
    (made / "data").mkdir(parents=True)
    (made / "train.py").write_text("print('training')\n")
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "data" / "tiny.txt").write_text("a b c\n")
    return made


def members(made: CodePack) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(made.content)) as archive:
        return {entry.name: entry for entry in archive.getmembers()}


def refused(folder: Path, script: str = "train.py") -> str:
    with pytest.raises(UserError) as caught:
        pack(folder, script)
    return str(caught.value)


def test_the_same_files_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    before = pack(folder)
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    moved = folder.rename(tmp_path / "elsewhere")
    assert pack(moved).content == before.content
    assert list(members(before)) == ["data/tiny.txt", "run.sh", "train.py"]
    assert {(entry.mtime, entry.uid, entry.uname) for entry in members(before).values()} == {(0, 0, "")}
    assert members(before)["run.sh"].mode == 0o755
    (moved / "train.py").write_text("print('more')\n")
    assert pack(moved).sha256 != before.sha256


def test_caches_environments_and_what_ignore_files_name_stay_at_home(folder: Path) -> None:
    for name in (
        ".git/config",
        "__pycache__/a.pyc",
        "mine/pyvenv.cfg",
        "out/model.pt",
        "deep/out/x",
        "a.log",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "keep.log").write_text("x")
    (folder / ".gitignore").write_text("# written by the run\n/out/\n*.log\n!keep.log\n")
    (folder / ".trainstackignore").write_text("data/**\n")
    assert set(members(pack(folder))) == {
        *(".gitignore", ".trainstackignore", "data", "deep/out/x", "keep.log", "run.sh", "train.py")
    }


def test_a_link_inside_goes_along_and_one_that_leads_out_is_refused(folder: Path) -> None:
    (folder / "latest").symlink_to("data")
    assert members(pack(folder))["latest"].linkname == "data"
    (folder / "secrets").symlink_to("/etc")
    with pytest.raises(UserError) as caught:
        pack(folder)
    assert set(caught.value.codes) == {("link-leaves-folder", "secrets")}


@pytest.mark.parametrize(
    "name", [".env", "deploy.pem", "id_ed25519", "credentials", ".aws/config", "my-service-account.json"]
)
def test_what_looks_like_a_secret_is_named(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert f"{name}: " in refused(folder) and "[file-like-secret]" in refused(folder)
    (folder / ".trainstackignore").write_text(f"{name}\n")
    assert name not in members(pack(folder))


def test_a_folder_without_its_script_says_which_scripts_it_has(folder: Path) -> None:
    assert "run.sh, train.py. [script-missing]" in refused(folder, "fit.py")
    (folder / ".trainstackignore").write_text("train.py\n")
    assert "!train.py" in refused(folder)


def test_a_missing_folder_and_a_file_are_refused(folder: Path) -> None:
    assert "[folder-not-found]" in refused(folder / "no")
    assert "--script train.py" in refused(folder / "train.py")


def test_twenty_gigabytes_are_refused_without_reading_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(20_000_000_000)  # a hole: it takes no disk
    monkeypatch.setattr(packs, "read_listed", lambda *words: pytest.fail(f"{words} was read"))
    said = refused(folder)
    assert "[folder-too-large]" in said and "weights.bin (20,000 MB)" in said


def test_too_many_files_are_refused_before_all_are_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 2)
    assert "[too-many-files]" in refused(folder)


def test_the_commit_is_the_version_only_of_what_the_commit_has(folder: Path) -> None:
    def git(*words: str) -> str:
        options = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", str(folder), *options, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert pack(folder).version == f"pack:{pack(folder).sha256}"
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert pack(folder).version == git("rev-parse", "HEAD")
    (folder / "extra.py").write_text("x = 1\n")  # goes along, and no commit has it
    assert pack(folder).commit is None
    (folder / "extra.py").unlink()
    (folder / "train.py").write_text("print('changed')\n")
    assert pack(folder).commit is None
