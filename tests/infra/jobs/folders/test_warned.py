"""Folders that are packed with a warning: a part of them does not work in a job."""

from pathlib import Path

import pytest

from tests.infra.jobs.folders.corpus import Folder, accepted, git

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 132735\n"
PROJECT = "[project]\nname = 'x'\ndependencies = ['numpy']\n"


def submodule_without_content(folder: Path) -> None:
    (folder / "vendor").mkdir()
    git(folder, "init", "-q")


def warned(code: str, path: str, **files: str | bytes) -> Folder:
    named = {name.replace("__", "/").replace("_dot_", "."): content for name, content in files.items()}
    return accepted("train.py", *named, files=named, warned=frozenset({(code, path)}))


NOT = "packages-not-installed"
FOLDERS: dict[str, Folder] = {
    "a pointer of Git LFS": warned(
        "file-is-lfs-pointer", "w_dot_bin".replace("_dot_", "."), w_dot_bin=POINTER
    ),
    "a submodule without content": accepted(
        ".gitmodules",
        "train.py",
        "vendor",
        build=submodule_without_content,
        files={".gitmodules": '[submodule "v"]\n\tpath = vendor\n\turl = https://example.com/v\n'},
        warned=frozenset({("submodule-empty", "vendor")}),
    ),
    "a program with line ends of Windows": warned(
        "program-line-ends", "tool.sh", tool_dot_sh="#!/bin/sh\r\nls\r\n"
    ),
    "conda": warned(NOT, "environment.yml", environment_dot_yml="dependencies: [python=3.11]\n"),
    "conda with a byte order mark": warned(
        NOT, "environment.yml", environment_dot_yml="\ufeffdependencies: []\n"
    ),
    "uv": warned(NOT, "uv.lock", uv_dot_lock="version = 1\n", pyproject_dot_toml=PROJECT),
    "Poetry": warned(
        NOT, "poetry.lock", poetry_dot_lock="", pyproject_dot_toml="[tool.poetry]\nname = 'x'\n"
    ),
    "Pipenv": warned(NOT, "Pipfile", Pipfile="[packages]\n"),
    "a project": warned(NOT, "pyproject.toml", pyproject_dot_toml=PROJECT),
    "an old project": warned(NOT, "setup.py", setup_dot_py="from setuptools import setup\nsetup()\n"),
    "a notebook as script": warned("script-needs-notebook", "train.py"),
    "syntax of another Python": warned("script-syntax", "train.py"),
    "a build of torch without its index": warned(
        "requirement-without-index", "requirements.txt:1", requirements_dot_txt="torch==2.9.0+cu130\n"
    ),
    "an index with a variable": warned(
        "requirement-needs-variable",
        "requirements.txt:1",
        requirements_dot_txt="--extra-index-url https://${USER}:${TOKEN}@example.com/simple\n",
    ),
    "requirements beside the script": accepted(
        "src/fit.py",
        "src/requirements.txt",
        "train.py",
        script="src/fit.py",
        files={"src/fit.py": "x = 1", "src/requirements.txt": "numpy\n"},
        warned=frozenset({(NOT, "src/requirements.txt")}),
    ),
}
SCRIPTS = {
    "a notebook as script": "get_ipython().system('pip install x')\n",
    "syntax of another Python": "print 'training'\n",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_folder_is_packed_with_a_warning(tmp_path: Path, name: str) -> None:
    folder = FOLDERS[name]
    if name in SCRIPTS:
        folder = Folder(packed=folder.packed, warned=folder.warned, files={"train.py": SCRIPTS[name]})
    assert folder.check(tmp_path / "run") is not None
