"""A rehearsal of rendered files before they are written to their place."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from infra.places import PACKAGES
from trainstack.stamp import environment
from trainstack.stamp.folder import write

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from trainstack.cli import main; main()"


def up(texts: Mapping[str, str], client: str, stack: str) -> int:
    """Deploy a stack of the files in emulated clouds, print its summary, and leave nothing.

    Returns the exit code of `trainstack up --rehearse`.
    """
    with tempfile.TemporaryDirectory(prefix="trainstack-") as parent:
        folder = Path(parent, client)
        write(texts, folder)
        environment.link(folder)
        try:
            return _run(folder, "up", "-s", stack, "--rehearse", "--yes")
        finally:
            _run(folder, "rehearse", "stop")


def _run(folder: Path, *words: str) -> int:
    command = [sys.executable, "-P", "-c", _PROGRAM, str(PACKAGES), *words]
    return subprocess.run(command, cwd=folder, check=False).returncode
