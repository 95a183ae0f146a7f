"""Folders as people have them, made on the spot, each with what becomes of it."""

import hashlib
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.errors import UserError
from infra.jobs.packing.pack import CodePack, pack

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
HEX = "0123456789abcdef"
TRAIN = "print('training')\n"
Files = Mapping[str, str | bytes]
Build = Callable[[Path], None]


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder: its files, then what `build` does to it; with a `train.py` unless `files` has `!train.py`."""

    files: Files = field(default_factory=dict)
    build: Build | None = None
    script: str = "train.py"
    send: tuple[str, ...] = ()
    packed: frozenset[str] | None = None
    """Exactly what is packed; None: refused."""
    refused: frozenset[tuple[str, str]] = frozenset()
    """Code and path of every problem."""
    warned: frozenset[tuple[str, str]] = frozenset()

    def made(self, where: Path) -> Path:
        where.mkdir(parents=True)
        if "!train.py" not in self.files:
            (where / "train.py").write_text(TRAIN)
        for name, content in self.files.items():
            if name.startswith("!"):
                continue
            file = where / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        if self.build is not None:
            self.build(where)
        return where

    def check(self, where: Path) -> CodePack | None:
        """Make it, pack it, and compare what came of it."""
        folder = self.made(where)
        try:
            made = pack(folder, self.script.replace("{folder}", str(folder)), self.send)
        except UserError as error:
            assert self.packed is None, str(error)
            assert set(error.codes) == {
                (code, path.replace("{folder}", str(folder))) for code, path in self.refused
            }
            assert all(problem.fix and problem.rule for problem in error.problems)
            return None
        assert self.packed is not None, f"packed {made.files}"
        assert set(made.files) == self.packed
        assert {(one.code, one.path) for one in made.warnings} == self.warned
        return made


def accepted(*packed: str, **more: object) -> Folder:
    return Folder(packed=frozenset(packed), **more)  # type: ignore[arg-type]


def refused(*codes: tuple[str, str], **more: object) -> Folder:
    return Folder(refused=frozenset(codes), **more)  # type: ignore[arg-type]


def text(alphabet: str, length: int, seed: str = "") -> str:
    """Characters as of a token, the same every time: no token stands in this repository."""
    drawn = hashlib.shake_256(f"{alphabet}{length}{seed}".encode()).digest(length)
    return "".join(alphabet[byte % len(alphabet)] for byte in drawn)


def git(folder: Path, *words: str) -> str:
    """Run git with an identity of its own and without the settings of this machine."""
    options = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *options, *words],
        check=True,
        capture_output=True,
        env=environment,
        text=True,
    )
    return done.stdout.strip()


def committed(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-f", ".")
    git(folder, "commit", "-q", "-m", "first")
