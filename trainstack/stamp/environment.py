"""Links from a client's folder to this installation: `.trainstack/`, never committed.

With them, native Pulumi commands work in the folder.
The folder of the program is not the client's: Python would import packages there that have the names of ours.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from infra.engine.golang import SetupError
from infra.places import PACKAGES, PROGRAM, STATE_NAME
from infra.stackspec import json_schema

VENV = f"{STATE_NAME}/venv"
POLICIES = f"{STATE_NAME}/policies"
"""A policy pack for `--policy-pack`."""
SCHEMA = f"{STATE_NAME}/spec.schema.json"
"""The schema of stack files, for editors."""
_STUB = """\
# Written by the command `trainstack`, and again when it differs.
import runpy
import sys

# Packages of this installation come before those of PYTHONPATH, which may have the same names.
sys.path.insert(0, {packages!r})
runpy.run_module({module!r}, run_name="__main__")
"""
_PACK = """\
description: Rules for GPU training stacks
runtime:
  name: python
  options:
    virtualenv: ../venv
"""


@dataclass(frozen=True)
class ProgramPlace:
    """Folder of the packages, and the virtual environment that has them; default: this process's."""

    packages: Path = PACKAGES
    prefix: Path = Path(sys.prefix)


THIS = ProgramPlace()


def link(folder: Path, program: ProgramPlace = THIS) -> None:
    """Write what is missing or of another installation. Raises SetupError where that is not possible."""
    python = program.prefix / "bin" / "python"
    if not python.exists():
        fix = "Install trainstack into an environment of its own: uv tool, pipx, or venv."
        raise SetupError(f"Pulumi needs {python} to run the program, which does not exist", fix)
    files = {
        f"{STATE_NAME}/.gitignore": "*\n",
        f"{PROGRAM}/__main__.py": _STUB.format(packages=str(program.packages), module="stacks"),
        f"{POLICIES}/__main__.py": _STUB.format(packages=str(program.packages), module="policies"),
        f"{POLICIES}/PulumiPolicy.yaml": _PACK,
    }
    try:
        for name, text in files.items():
            _write(folder / name, text)
        # Pulumi resolves the option from the project's folder and, for dynamic resources, from the program's.
        for name in (VENV, f"{PROGRAM}/{VENV}"):
            _link(folder / name, str(program.prefix))
        _link(folder / SCHEMA, str(json_schema.PATH))
    except OSError as error:
        fix = f"Make {folder / STATE_NAME} a folder that you can write to, or remove it."
        raise SetupError(f"the link to this installation cannot be written: {error}", fix) from error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or not path.exists() or path.read_text(errors="replace") != text:
        _replace(path, lambda draft: draft.write_text(text))


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink() or str(path.readlink()) != target:
        _replace(path, lambda draft: draft.symlink_to(target))


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
