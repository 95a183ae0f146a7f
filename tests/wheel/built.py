"""The wheel, built from a copy of the files of this checkout, without what earlier builds left."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.test_structure import LAYERS, ROOT

_BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
_BESIDE = ("pyproject.toml", "README.md", "LICENSE")


def files() -> list[str]:
    """Files of the packages that are tracked, or are about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *LAYERS]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).is_file()]


def build(folder: Path) -> Path:
    """Build in a folder; returns the wheel."""
    source, target = folder / "source", folder / "dist"
    pages = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")]
    for name in (*files(), *pages, *_BESIDE):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    target.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(target)], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel
