"""The archive: the same for the same files everywhere, safe to unpack, and never with a file from outside."""

import io
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.errors import UserError
from infra.jobs.packing import folder as folders
from infra.jobs.packing import opening
from infra.jobs.packing import pack as packs
from infra.jobs.packing.pack import CodePack, pack
from tests.infra.jobs.folders.corpus import committed, git
from tests.infra.jobs.folders.test_accepted import FOLDERS

DIGEST = """
import pathlib, sys
from infra.jobs.packing.pack import pack
print(pack(pathlib.Path(sys.argv[1])).sha256)
"""


def members(made: CodePack) -> list[tarfile.TarInfo]:
    with tarfile.open(
        fileobj=io.BytesIO(made.content), encoding="utf-8", errors="surrogateescape"
    ) as archive:
        return archive.getmembers()


def mixed(folder: Path, *, backwards: bool = False) -> Path:
    names = ["b/ü.txt", "a.txt", "c.sh", "train.py", "B.txt", os.fsdecode(b"caf\xe9")]
    for name in reversed(names) if backwards else names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n" if name == "c.sh" else "x = 1\n")
    (folder / "l").symlink_to("b")
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_the_digest_depends_on_the_files_alone(tmp_path: Path, umask: int, locale: str) -> None:
    expected = pack(mixed(tmp_path / "first")).sha256
    before = os.umask(umask)
    try:
        other = mixed(tmp_path / "second", backwards=True)
    finally:
        os.umask(before)
    for path in other.rglob("*"):
        os.utime(path, (2**31, 2**31), follow_symlinks=False)
    environment = {
        **os.environ,
        "LC_ALL": locale,
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "TZ": "Asia/Tokyo",
    }
    done = subprocess.run(
        [sys.executable, "-c", DIGEST, str(other)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == expected


def test_the_digest_does_not_depend_on_the_library_that_compresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mixed(tmp_path / "run")
    first = pack(folder)
    monkeypatch.setattr(packs, "_LEVEL", 1)
    second = pack(folder)
    assert first.sha256 == second.sha256 and first.version == second.version
    assert first.content != second.content


def test_a_file_system_without_programs_gives_the_same(tmp_path: Path) -> None:
    folder = mixed(tmp_path / "run")
    first = pack(folder)
    (folder / "c.sh").chmod(0o755)
    assert pack(folder).sha256 == first.sha256
    assert {one.name: one.mode for one in members(first) if one.isreg()}["c.sh"] == 0o755


@pytest.mark.parametrize("name", FOLDERS)
def test_an_archive_has_only_files_below_its_folder(tmp_path: Path, name: str) -> None:
    made = FOLDERS[name].check(tmp_path / "run")
    assert made is not None
    for one in members(made):
        assert one.isreg() or one.issym() or one.isdir()
        assert one.mode in (0o644, 0o755) and (one.mtime, one.uid, one.gid, one.uname) == (0, 0, 0, "")
        assert not one.name.startswith("/") and ".." not in one.name.split("/")
        if one.issym():
            assert not one.linkname.startswith("/")
            target = os.path.normpath(f"/run/{one.name}/../{one.linkname}")
            assert target == "/run" or target.startswith("/run/")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_tar_of_the_container_unpacks_every_name(tmp_path: Path, locale: str) -> None:
    wanted = (
        "latin-1 in a name",
        "a long name in long folders",
        "names with blanks, quotes and dashes",
        "a link through a link",
    )
    for number, name in enumerate((*wanted, "an empty folder")):
        made = FOLDERS[name].check(tmp_path / str(number) / "run")
        assert made is not None
        out = tmp_path / str(number) / "out"
        out.mkdir()
        (out.parent / "code.tar.gz").write_bytes(made.content)
        command = ["tar", "-xzf", str(out.parent / "code.tar.gz")]
        done = subprocess.run(
            command, cwd=out, env={**os.environ, "LC_ALL": locale}, check=True, capture_output=True, text=True
        )
        assert done.stderr == ""
        for path in made.files:
            assert os.path.lexists(os.fsencode(out) + b"/" + path.encode("utf-8", "surrogateescape"))
        assert all(path.resolve().is_relative_to(out.resolve()) for path in out.rglob("*"))


# -- changes while the folder is packed, by another user of it --------------------------------------------


def swapped(
    folder: Path, change: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[str, str], ...]:
    """The problems of a folder that changes between its listing and its reading."""

    def survey(*words: object) -> object:
        found = folders.survey(*words)  # type: ignore[arg-type]
        change()
        return found

    monkeypatch.setattr("infra.jobs.packing.pack.survey", survey)
    with pytest.raises(UserError) as caught:
        pack(folder)
    return caught.value.codes


def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text("x = 1\n")
    (folder / "data" / "x.txt").write_text("12345")
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "x.txt").write_text("other")
    return folder


def test_a_link_that_replaces_a_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(tmp_path)

    def change() -> None:
        (folder / "data" / "x.txt").unlink()
        (folder / "data" / "x.txt").symlink_to(tmp_path / "home" / "data" / "x.txt")

    assert swapped(folder, change, monkeypatch) == (("file-changed", "data/x.txt"),)


def test_a_link_that_replaces_a_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(tmp_path)

    def change() -> None:
        (folder / "data").rename(tmp_path / "moved")
        (folder / "data").symlink_to(tmp_path / "home" / "data")

    assert swapped(folder, change, monkeypatch) == (("file-changed", "data/x.txt"),)


def test_a_folder_that_becomes_a_link_while_it_is_listed_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(tmp_path)

    def late(name: bytes, above: int | None = None) -> object:
        if name == b"data":
            (folder / "data").rename(tmp_path / "moved")
            (folder / "data").symlink_to(tmp_path / "home" / "data")
        return opening.opened_folder(name, above)

    monkeypatch.setattr(folders, "opened_folder", late)
    with pytest.raises(UserError) as caught:
        pack(folder)
    assert caught.value.codes == (("file-changed", "data"),)


def shorter(file: Path) -> None:
    file.write_text("1234")


def longer(file: Path) -> None:
    file.write_text("123456")


def as_long(file: Path) -> None:
    file.write_text("54321")
    os.utime(file, ns=(1, 1))


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("change", [shorter, longer, as_long, Path.unlink, fifo, directory])
def test_a_file_that_changes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    folder = run_folder(tmp_path)
    codes = swapped(folder, lambda: change(folder / "data" / "x.txt"), monkeypatch)
    assert codes == (("file-changed", "data/x.txt"),)


def test_a_file_that_grows_without_end_is_not_read_without_end(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    with opening.opened_folder(os.fsencode(folder)) as root:
        status = (folder / "train.py").stat()
        listed = opening.state_of(status)
        done = threading.Event()
        with (folder / "train.py").open("a") as file:

            def write() -> None:
                while not done.is_set():
                    file.write("x" * 1000)
                    file.flush()

            writer = threading.Thread(target=write)
            writer.start()
            try:
                while (folder / "train.py").stat().st_size == status.st_size:
                    pass
                with pytest.raises(opening.FileChangedError):
                    opening.read_listed(root, "train.py", listed)
            finally:
                done.set()
                writer.join()


# -- the commit ---------------------------------------------------------------------------------------


def test_a_file_that_git_takes_for_unchanged_has_no_commit(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    committed(folder)
    assert pack(folder).commit == git(folder, "rev-parse", "HEAD")
    git(folder, "update-index", "--assume-unchanged", "data/x.txt")
    (folder / "data" / "x.txt").write_text("my own")
    assert git(folder, "status", "--porcelain") == ""
    assert pack(folder).commit is None


def test_a_program_that_the_folder_names_to_git_is_not_executed(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    committed(folder)
    (folder.parent / "spy.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    (folder.parent / "spy.sh").chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(folder.parent / "spy.sh"))
    assert pack(folder).commit is not None
    assert not (tmp_path / "executed").exists()


def test_the_commit_is_of_the_folder_when_git_runs_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(tmp_path)
    committed(folder)
    expected = git(folder, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    assert pack(folder).commit == expected
