"""The checker of GitHub workflows, rhysd/actionlint, built from its Go module (tools/actionlint).

Run as a module, it is built: `make binaries`.
"""

import hashlib
import subprocess
from pathlib import Path

import pytest

from infra.engine.golang import ROOT, SetupError, build

_MODULE = ROOT / "tools" / "actionlint"


def _program() -> Path:
    digest = hashlib.sha256((_MODULE / "go.sum").read_bytes()).hexdigest()[:12]
    return ROOT / ".trainstack" / "bin" / f"actionlint-{digest}"


def faults(repository: Path) -> str:
    """Report of faults in the workflows of a repository; skips the test where it is not built."""
    program = _program()
    if not program.exists():
        pytest.skip("actionlint is not built: make binaries")
    subprocess.run(["git", "init", "--quiet"], cwd=repository, check=True)
    files = sorted((repository / ".github" / "workflows").iterdir())
    command = [str(program), "-no-color", "-shellcheck=", "-pyflakes=", *map(str, files)]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False).stdout


def install() -> None:
    """Build it, once (20 seconds). Raises SetupError."""
    if not _program().exists():
        _program().parent.mkdir(parents=True, exist_ok=True)
        draft = _program().with_suffix(".draft")
        build(_MODULE, draft, "", "github.com/rhysd/actionlint/cmd/actionlint")
        draft.replace(_program())


if __name__ == "__main__":
    try:
        install()
    except SetupError as error:
        print(f"workflows of clients are not checked by actionlint: {error}")  # noqa: T201
