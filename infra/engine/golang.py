"""Builds binaries from Go modules of ours below `tools/`; standard library only."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
# The last lines of a failed build say why.
_TAIL = 8

# Builds under way, so that an interrupted set-up can end them.
_BUILDS: set[subprocess.Popen[str]] = set()


class SetupError(Exception):
    """Set-up cannot go on; the message says what is missing and how to supply it."""


def find_go() -> str | None:
    """The path of the `go` command, None when there is none."""
    return shutil.which("go")


def go(folder: Path, *arguments: str) -> str:
    """What `go` says when it is run in a module's folder. Raises SetupError when it fails or is not there."""
    command = find_go()
    if command is None:
        raise SetupError(f"there is no Go to build {folder.name} with. Install Go 1.26, then run make again.")
    # The compiler spends an eighth of its time collecting garbage that nobody is short of room for.
    environment = {"GOGC": "400", **os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    with subprocess.Popen(
        [command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=environment,
    ) as build:  # fmt: skip
        _BUILDS.add(build)
        said, complained = build.communicate()
        _BUILDS.discard(build)
    if build.returncode == 0:
        return said
    last = "\n".join(complained.strip().splitlines()[-_TAIL:])
    hint = (
        "Free some disk space" if "no space left" in last else "Check the network and the Go proxy settings"
    )
    raise SetupError(f"go {arguments[0]} failed in {folder}:\n{last}\n{hint}, then run make again.")


def build(folder: Path, target: Path, variables: str, *packages: str, tags: str = "") -> None:
    """Build programs of a module's folder into `target`, a file, or for several a folder.

    `variables` are flags of the linker that set variables of the programs, `tags` build constraints. Nothing
    is compiled for a debugger, which saves 9 % of a build's time. Raises SetupError as `go` does.
    """
    flags = ("-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {variables}", "-tags", tags)
    go(folder, "build", *flags, "-o", str(target), *packages)


def stop_building() -> None:
    """End a build that another thread waits for, with its compilers."""
    for process in list(_BUILDS):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
