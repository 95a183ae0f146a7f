"""Folders that a run takes, with exactly what is packed of each."""

import os
import stat
from pathlib import Path

import pytest

from tests.infra.jobs.folders.corpus import Folder, accepted, committed, git

BOM = b"\xef\xbb\xbf"


def link(name: str, target: str) -> object:
    def build(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target.replace("{folder}", str(folder)))

    return build


def latin1(folder: Path) -> None:
    os.close(os.open(os.fsencode(folder) + b"/caf\xe9.txt", os.O_CREAT | os.O_WRONLY))


def tracked_latin1(folder: Path) -> None:
    latin1(folder)
    committed(folder)


def empty(folder: Path) -> None:
    (folder / "outputs" / "plots").mkdir(parents=True)


def script_is_link(folder: Path) -> None:
    (folder / "train.py").rename(folder / "train_v2.py")
    (folder / "train.py").symlink_to("train_v2.py")


def old_and_future(folder: Path) -> None:
    os.utime(folder / "train.py", (0, 0))
    os.utime(folder / "old.txt", (-86400 * 3650, -86400 * 3650))
    os.utime(folder / "new.txt", (2**33, 2**33))


def setuid(folder: Path) -> None:
    (folder / "train.py").chmod(0o6777 | stat.S_ISVTX)


def hard_link(folder: Path) -> None:
    os.link(folder / "train.py", folder / "same.py")


def sparse(folder: Path) -> None:
    with (folder / "index.bin").open("wb") as file:
        file.truncate(1_000_000)


def submodule(folder: Path) -> None:
    library = folder.parent / "library"
    library.mkdir()
    (library / "lib.py").write_text("x = 1\n")
    committed(library)
    git(folder, "init", "-q")
    git(folder, "submodule", "add", "-q", str(library), "vendor/library")


def inside_a_repository(folder: Path) -> None:
    """The folder is a part of a repository, whose top has the ignore file."""
    (folder.parent / ".gitignore").write_text("*.ckpt\n/run/wandb/\n")
    git(folder.parent, "init", "-q")
    (folder / "wandb").mkdir()
    (folder / "wandb" / "log").write_text("x")


def ignored_by_its_repository(folder: Path) -> None:
    (folder.parent / ".gitignore").write_text("run/\n")
    git(folder.parent, "init", "-q")


def read_only(folder: Path) -> None:
    (folder / "train.py").chmod(0o400)


FOLDERS: dict[str, Folder] = {
    "only a script": accepted("train.py"),
    "caches, editors and environments": accepted(
        "train.py",
        "src/a.py",
        files={
            "src/a.py": "",
            "src/__pycache__/a.cpython-311.pyc": "x",
            "__pycache__/b.pyc": "x",
            "c.pyc": "x",
            ".git/config": "x",
            ".venv/bin/python": "x",
            "mine/pyvenv.cfg": "x",
            "mine/lib/x.py": "x",
            ".idea/x.xml": "x",
            ".ipynb_checkpoints/a.ipynb": "x",
            "mlruns/0/meta.yaml": "x",
            "a.egg-info/PKG-INFO": "x",
            ".DS_Store": "x",
            "Thumbs.db": "x",
            "src/desktop.ini": "x",
            "__MACOSX/._train.py": "x",
            "node_modules/x/y.js": "x",
        },
    ),
    "a conda environment": accepted(
        "train.py",
        "envs",
        files={"envs/torch/conda-meta/history": "x", "envs/torch/bin/python": "x", ".conda/x": "x"},
    ),
    "latin-1 in a name": accepted("train.py", "caf\udce9.txt", build=latin1),
    "latin-1 in a tracked name": accepted("train.py", "caf\udce9.txt", build=tracked_latin1),
    "names with blanks, quotes and dashes": accepted(
        "train.py",
        "-rf.py",
        'it\'s a "name".txt',
        "datei ü.txt",
        files={"-rf.py": "x=1", 'it\'s a "name".txt': "", "datei ü.txt": ""},
    ),
    "a long name in long folders": accepted(
        "train.py",
        f"{'d' * 120}/{'e' * 120}/{'f' * 200}.txt",
        files={f"{'d' * 120}/{'e' * 120}/{'f' * 200}.txt": "x"},
    ),
    "names that differ in capitals": accepted(
        "train.py", "Model.py", "model.py", files={"Model.py": "", "model.py": ""}
    ),
    "a backslash in a name": accepted("train.py", "data\\x.txt", files={"data\\x.txt": ""}),
    "an empty folder": accepted("train.py", "outputs/plots", build=empty),
    "an empty file": accepted("train.py", "a/__init__.py", files={"a/__init__.py": ""}),
    "a link to a file": accepted(
        "train.py",
        "data/tiny.txt",
        "latest.txt",
        files={"data/tiny.txt": "x"},
        build=link("latest.txt", "data/tiny.txt"),
    ),
    "a link to a folder": accepted(
        "train.py", "data/tiny.txt", "latest", files={"data/tiny.txt": "x"}, build=link("latest", "data")
    ),
    "a link through a link": accepted(
        "train.py", "d/x", "sub/l", files={"d/x": ""}, build=link("sub/l", "../sub/../d/x")
    ),
    "an absolute link to a file of the folder": accepted(
        "train.py", "copy.py", build=link("copy.py", "{folder}/train.py")
    ),
    "a link to the folder itself": accepted("train.py", "here", build=link("here", ".")),
    "a script that is a link": accepted("train.py", "train_v2.py", build=script_is_link),
    "a script named with a dot": accepted("train.py", script="./train.py"),
    "a script named by a detour": accepted(
        "train.py", "src/x", files={"src/x": ""}, script="src/../train.py"
    ),
    "a script named absolutely": accepted("train.py", script="{folder}/train.py"),
    "a script named as on Windows": accepted(
        "src/fit.py", files={"!train.py": "", "src/fit.py": "x = 1"}, script="src\\fit.py"
    ),
    "a shell script": accepted(
        "run.sh", "train.py", files={"run.sh": "#!/bin/bash\npython train.py\n"}, script="run.sh"
    ),
    "a Python script without a suffix": accepted(
        "fit", "train.py", files={"fit": "#!/usr/bin/env python3\nx = 1\n"}, script="fit"
    ),
    "a script of a package": accepted(
        "pkg/__init__.py",
        "pkg/model.py",
        "pkg/train.py",
        script="pkg/train.py",
        files={
            "!train.py": "",
            "pkg/__init__.py": "",
            "pkg/model.py": "",
            "pkg/train.py": "from .model import *\n",
        },
    ),
    "a script with an alternative to a relative import": accepted(
        "model.py",
        "train.py",
        files={
            "model.py": "",
            "train.py": "try:\n    from .model import a\nexcept ImportError:\n    import model\n",
        },
    ),
    "line ends of Windows in Python": accepted("train.py", files={"train.py": "x = 1\r\nprint(x)\r\n"}),
    "byte order marks": accepted(
        "train.py",
        "requirements.txt",
        "conf.yaml",
        files={
            "train.py": BOM + b"x = 1\n",
            "requirements.txt": BOM + b"numpy\n",
            "conf.yaml": BOM + b"a: 1\n",
        },
    ),
    "a byte order mark in .gitignore": accepted(
        ".gitignore", "train.py", files={".gitignore": BOM + b"weights.bin\n", "weights.bin": "x"}
    ),
    "line ends of Windows in .gitignore": accepted(
        ".gitignore",
        "train.py",
        files={".gitignore": "weights.bin\r\nout/\r\n", "weights.bin": "x", "out/x": "x"},
    ),
    "latin-1 in .gitignore": accepted(
        ".gitignore", "train.py", files={".gitignore": b"caf\xe9.txt\n"}, build=latin1
    ),
    "a pattern that git cannot read": accepted(
        ".gitignore", "train.py", files={".gitignore": "!\nx.bin\n", "x.bin": ""}
    ),
    "an ignore file that includes again": accepted(
        ".gitignore",
        ".trainstackignore",
        "config.json",
        "train.py",
        files={
            ".gitignore": "*.json\n",
            ".trainstackignore": "!config.json\n",
            "config.json": "{}",
            "other.json": "{}",
        },
    ),
    "an ignore file in a folder": accepted(
        "a/.gitignore",
        "a/x.txt",
        "train.py",
        "x.log",
        files={"a/.gitignore": "*.log\n", "a/y.log": "", "a/x.txt": "", "x.log": ""},
    ),
    "a folder that its ignore file empties": accepted(
        ".gitignore", "out", "train.py", files={".gitignore": "out/*\n", "out/x": ""}
    ),
    "a part of a repository": accepted("train.py", files={"last.ckpt": "x"}, build=inside_a_repository),
    "a folder that its repository ignores": accepted("train.py", build=ignored_by_its_repository),
    "a submodule": accepted(".gitmodules", "train.py", "vendor/library/lib.py", build=submodule),
    "times before 1980 and after 2100": accepted(
        "new.txt", "old.txt", "train.py", files={"old.txt": "", "new.txt": ""}, build=old_and_future
    ),
    "setuid": accepted("train.py", build=setuid),
    "a hard link": accepted("same.py", "train.py", build=hard_link),
    "a sparse file": accepted("index.bin", "train.py", build=sparse),
    "a file for its owner alone": accepted("train.py", build=read_only),
    "data": accepted("data/tiny.csv", "train.py", files={"data/tiny.csv": "a,b\n1,2\n"}),
    "requirements of every kind": accepted(
        "base.txt",
        "pkg/pyproject.toml",
        "pyproject.toml",
        "requirements.txt",
        "train.py",
        "vendor/a-1.0-py3-none-any.whl",
        files={
            "base.txt": "numpy>=2 ; python_version > '3'\n",
            "pyproject.toml": "[project]\nname='x'\n",
            "pkg/pyproject.toml": "[project]\nname='y'\n",
            "vendor/a-1.0-py3-none-any.whl": b"x",
            "requirements.txt": "# comment\n-r base.txt\n-c ./base.txt\n--extra-index-url https://download.pytorch.org/whl/cu130\n"
            "torch==2.9.0+cu130\n-e .\n./pkg[dev]\nvendor/a-1.0-py3-none-any.whl\n"
            "mlflow[extras] >= 3 # inline\n"
            "git+https://github.com/a/b@0123456789abcdef0123456789abcdef01234567#egg=b\nb @ git+https://git@github.com/a/b\n"
            "pywin32==306 ; sys_platform == 'win32'\nrich \\\n  --hash=sha256:"
            + "0" * 64
            + "\n--find-links vendor\n",
        },
    ),
    "a wheel of the folder by a relative address": accepted(
        "requirements.txt",
        "train.py",
        "wheels/x-1-py3-none-any.whl",
        files={
            "requirements.txt": "file:./wheels/x-1-py3-none-any.whl\nx @ file:wheels/x-1-py3-none-any.whl\n",
            "wheels/x-1-py3-none-any.whl": b"PK",
        },
    ),
    "requirements from PowerShell": accepted(
        "requirements.txt", "train.py", files={"requirements.txt": "numpy==2.1\r\n".encode("utf-16")}
    ),
    "a project with settings of tools alone": accepted(
        "pyproject.toml", "train.py", files={"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}
    ),
    "examples of secrets": accepted(
        ".env.example",
        "README.md",
        "credentials.py",
        "train.py",
        files={
            ".env.example": "HF_TOKEN=\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
            "README.md": "export HF_TOKEN=hf_"
            + "x" * 34
            + "\nAKIAIOSFODNN7EXAMPLE\nhttp://user:password@proxy:3128\n",
            "credentials.py": 'HEADER = "-----BEGIN PRIVATE KEY-----"\n'
            'wandb_key = os.environ["WANDB_API_KEY"]\n',
        },
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_is_packed(tmp_path: Path, name: str) -> None:
    assert FOLDERS[name].check(tmp_path / "run") is not None
