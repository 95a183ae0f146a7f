"""Packages of users that this environment cannot have beside its own, each in a folder for PYTHONPATH.

Run as a module, it installs them: `make binaries`. They must not be on the path of other programs: the
plug-in of mlflow writes a warning for each request to a server without an ARN.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from infra.engine.golang import ROOT

LOCKS = Path(__file__).parent
NAMES = tuple(sorted(lock.stem for lock in LOCKS.glob("*.lock")))


def _folder(name: str) -> Path:
    digest = hashlib.sha256((LOCKS / f"{name}.lock").read_bytes()).hexdigest()[:12]
    return ROOT / ".trainstack" / "clients" / f"{name}-{digest}"


def folder(name: str) -> Path:
    """The folder with a package; skips the test where it is not installed."""
    if not _folder(name).is_dir():
        pytest.skip(f"{name} is not installed: make binaries")
    return _folder(name)


def install(name: str) -> bool:
    """Install a package, once."""
    place = _folder(name)
    draft = place.with_name(f"{place.name}.draft")
    command = [
        *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"),
        *("--target", str(draft), "--requirements", str(LOCKS / f"{name}.lock")),
    ]
    if place.is_dir():
        return True
    if subprocess.run(command, check=False).returncode:
        return False
    draft.rename(place)
    return True


if __name__ == "__main__":
    missing = [name for name in NAMES if not install(name)]
    if missing:
        print(f"tests with {', '.join(missing)} are skipped: the packages could not be fetched")  # noqa: T201
