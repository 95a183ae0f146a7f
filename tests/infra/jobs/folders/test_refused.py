"""Folders that are refused, each with the code and path of all of its problems."""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.jobs.packing import folder as folders
from tests.infra.jobs.folders.corpus import Folder, accepted, refused

UTF16 = "print('x')\n".encode("utf-16")


def link(name: str, target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).symlink_to(target)


def loop(folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")


def neighbour(folder: Path) -> None:
    (folder.parent / "run2").mkdir()
    (folder / "l").symlink_to("../run2")


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def listening(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # the path of a socket has at most 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    finally:
        os.chdir(here)


def line_break(folder: Path) -> None:
    (folder / "a\nb.txt").write_text("x")


def huge(folder: Path) -> None:
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(20_000_000_000)


def deep(folder: Path) -> None:
    path = folder
    for _ in range(110):
        path /= "d"
    path.mkdir(parents=True)


def requirement(line: str, code: str, number: int = 1) -> Folder:
    return refused((code, f"requirements.txt:{number}"), files={"requirements.txt": line})


def notebook(source: str = "print(1)") -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": [source]}], "nbformat": 4})


FOLDERS: dict[str, Folder] = {
    "a link that leads out": refused(("link-leaves-folder", "etc"), build=link("etc", "/etc")),
    "a link to the folder above": refused(("link-leaves-folder", "up"), build=link("up", "..")),
    "a link to a neighbour with the same beginning": refused(("link-leaves-folder", "l"), build=neighbour),
    "a broken link": refused(("link-broken", "gone"), build=link("gone", "no-such-file")),
    "links in a circle": refused(("link-broken", "a"), ("link-broken", "b"), build=loop),
    "a link to itself": refused(("link-broken", "me"), build=link("me", "me")),
    "a link to a file that is left out": refused(
        ("link-target-left-out", "best.pt"),
        files={"out/w.pt": "x", ".gitignore": "out/\n"},
        build=link("best.pt", "out/w.pt"),
    ),
    "a link to an environment": refused(
        ("link-target-left-out", "py"),
        files={"env/pyvenv.cfg": "", "env/bin/python": ""},
        build=link("py", "env/bin/python"),
    ),
    "a FIFO": refused(("not-a-regular-file", "pipe"), build=fifo),
    "a socket": refused(("not-a-regular-file", "socket"), build=listening),
    "a line break in a name": refused(("name-not-printable", "a\\x0ab.txt"), build=line_break),
    "a huge file": refused(("folder-too-large", "{folder}"), build=huge),
    "too many levels": refused(("folder-too-deep", "/".join("d" * 101)), build=deep),
    "an environment": refused(
        ("folder-is-environment", "folder"), files={"conda-meta/history": "", "lib/x.py": ""}
    ),
    # The script.
    "no script": refused(("script-missing", "{folder}"), files={"!train.py": "", "fit.py": "x = 1"}),
    "only a notebook": refused(
        ("script-missing", "{folder}"), files={"!train.py": "", "train.ipynb": notebook()}
    ),
    "a notebook": refused(
        ("script-is-notebook", "train.ipynb"), files={"train.ipynb": notebook()}, script="train.ipynb"
    ),
    "a notebook named as a script": refused(
        ("script-is-notebook", "train.py"), files={"train.py": notebook()}
    ),
    "a script that is left out": refused(("script-ignored", "{folder}"), files={".gitignore": "train.py\n"}),
    "a script in a cache": refused(
        ("script-ignored", "{folder}"), files={"venv/fit.py": "x = 1"}, script="venv/fit.py"
    ),
    "a script outside": refused(("script-outside-folder", "--script"), script="../train.py"),
    "a script of another folder": refused(("script-outside-folder", "--script"), script="/etc/passwd"),
    "a script that is a folder": refused(
        ("script-missing", "{folder}"), files={"src/__main__.py": "x = 1"}, script="src"
    ),
    "a script named as a module": refused(
        ("script-missing", "{folder}"), files={"pkg/fit.py": "x = 1"}, script="pkg.fit"
    ),
    "an empty script": refused(("script-empty", "train.py"), files={"train.py": "# to do\n"}),
    "an empty shell script": refused(("script-empty", "run.sh"), files={"run.sh": "\n"}, script="run.sh"),
    "a batch file": refused(
        ("script-not-runnable", "run.bat"), files={"run.bat": "python train.py"}, script="run.bat"
    ),
    "a program": refused(("script-not-runnable", "fit"), files={"fit": b"\x7fELF\0\0"}, script="fit"),
    "line ends of Windows in a shell script": refused(
        ("script-line-ends", "run.sh"),
        files={"run.sh": "#!/bin/bash\r\npython train.py\r\n"},
        script="run.sh",
    ),
    "a byte order mark in a shell script": refused(
        ("script-encoding", "run.sh"), files={"run.sh": b"\xef\xbb\xbf#!/bin/bash\nls\n"}, script="run.sh"
    ),
    "a script from PowerShell": refused(("script-encoding", "train.py"), files={"train.py": UTF16}),
    "a script in latin-1": refused(
        ("script-encoding", "train.py"), files={"train.py": b"# caf\xe9\nx = 1\n"}
    ),
    "a relative import at the top": refused(
        ("script-imports-relatively", "train.py"),
        files={"train.py": "from .model import *\n", "model.py": ""},
    ),
    "a relative import above the folder": refused(
        ("script-imports-relatively", "a/fit.py"),
        files={"a/fit.py": "from ..b import c\n"},
        script="a/fit.py",
    ),
    # requirements.txt.
    "requirements of the folder above": requirement("-r ../requirements.txt\n", "requirement-not-packed"),
    "constraints of the folder above": requirement(
        "numpy\n-c ../constraints.txt\n", "requirement-not-packed", 2
    ),
    "a file of requirements that is left out": refused(
        ("requirement-not-packed", "requirements.txt:1"),
        files={"requirements.txt": "--requirement=dev.txt", "dev.txt": "x", ".gitignore": "dev.txt"},
    ),
    "a file of requirements that refers to another": refused(
        ("requirement-not-packed", "reqs/base.txt:2"),
        files={"requirements.txt": "-rreqs/base.txt", "reqs/base.txt": "# base\n-r no.txt\n"},
    ),
    "a package of the folder above": requirement("-e ../mylib\n", "requirement-not-packed"),
    "a package of the home": requirement("/home/ada/mylib\n", "requirement-not-packed"),
    "a package of Windows": requirement("C:\\Users\\ada\\mylib\n", "requirement-not-packed"),
    "a wheel by a relative address that is not there": requirement(
        "x @ file:./wheels/x-1-py3-none-any.whl\n", "requirement-not-packed"
    ),
    "packages of conda": requirement("numpy @ file:///croot/numpy_1234/work\n", "requirement-not-packed"),
    "a list of conda": requirement("numpy=1.26.4=py311h64a7726_0\n", "requirement-invalid"),
    "an editable folder without a project": requirement("-e .\n", "requirement-without-project"),
    "a package by SSH": requirement("git+ssh://git@github.com/a/b.git\n", "requirement-needs-key"),
    "a package by SSH without a scheme": requirement("git+git@github.com:a/b.git\n", "requirement-needs-key"),
    "a package for Windows": requirement("numpy\npywin32==306\n", "requirement-not-for-linux", 2),
    "requirements in latin-1": refused(
        ("requirements-encoding", "requirements.txt"), files={"requirements.txt": b"# caf\xe9\nnumpy\n"}
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    assert FOLDERS[name].check(tmp_path / "run") is None


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder that everyone may enter, for a process that may not read everything: root may."""
    whole = Path(tempfile.mkdtemp())
    whole.chmod(0o755)
    was_root = os.geteuid() == 0
    if was_root:
        os.chown(whole, 65534, 65534)
        os.seteuid(65534)
    yield whole
    if was_root:
        os.seteuid(0)
    for one in (whole / "run", *(whole / "run").rglob("*")):
        one.chmod(0o700)
    shutil.rmtree(whole)


@pytest.mark.parametrize(
    ("name", "files", "path"),
    [
        ("data.txt", {"data.txt": "x"}, "data.txt"),
        ("data", {"data/x.txt": "x"}, "data"),
        (".gitignore", {".gitignore": "x"}, ".gitignore"),
        (".", {}, "{folder}"),
    ],
)
def test_what_may_not_be_read_is_named(
    unprivileged: Path, name: str, files: dict[str, str], path: str
) -> None:
    folder = refused(("file-not-readable", path), files=files, build=lambda made: (made / name).chmod(0))
    assert folder.check(unprivileged / "run") is None


def test_a_folder_of_too_many_files_is_refused_with_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST_FILES", 10)
    many = {f"images/{number}.txt": "" for number in range(20)}
    made = refused(("too-many-files", "{folder}"), files=many)
    assert made.check(tmp_path / "many") is None
    kept = {**many, ".trainstackignore": "images/\n"}
    assert accepted(".trainstackignore", "train.py", files=kept).check(tmp_path / "kept") is not None
