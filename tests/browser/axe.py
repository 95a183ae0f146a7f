"""The axe-core library of `package-lock.json`, which checks pages for accessibility.

Run as a module, it is installed: `make binaries`.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from infra.engine.golang import ROOT

_HERE = Path(__file__).parent
_FILES = ("package.json", "package-lock.json")


def _folder() -> Path:
    digest = hashlib.sha256((_HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return ROOT / ".trainstack" / "clients" / f"axe-{digest}"


def source() -> str:
    """The library as text; skips the test where it is not installed."""
    path = _folder() / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip("axe-core is not installed: make binaries")
    return path.read_text(encoding="utf-8")


def install() -> bool:
    """Install it, once."""
    place = _folder()
    if place.is_dir():
        return True
    npm = shutil.which("npm")
    if npm is None:
        return False
    draft = place.with_name(f"{place.name}.draft")
    draft.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(_HERE / name, draft)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(command, cwd=draft, check=False).returncode:
        return False
    draft.rename(place)
    return True


if __name__ == "__main__" and not install():
    print("tests of accessibility are skipped: axe-core could not be fetched")  # noqa: T201
