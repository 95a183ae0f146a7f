"""Builds binaries from the Go modules below `tools/`; standard library only."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from infra import places
from infra.installation import repeat_command

ROOT = places.PACKAGES
TOOLS = ROOT / "tools"
# Lines of a failed build's output that are shown.
_TAIL = 8

# Running builds, so that an interrupted set-up can end them.
_BUILDS: set[subprocess.Popen[str]] = set()


class SetupError(Exception):
    """A needed program is missing or fails; `fix` is that of a command of `trainstack`."""

    def __init__(self, text: str, fix: str = "") -> None:
        super().__init__(text)
        self.fix = fix or f"Run `{repeat_command()}`, then repeat the command."


def find_go() -> str | None:
    """The path of the `go` command, None when there is none."""
    return shutil.which("go")


def go(folder: Path, *arguments: str) -> str:
    """Run `go` in a module's folder; return its output. Raises SetupError if it fails or is missing."""
    command = find_go()
    if command is None:
        raise SetupError(f"Go is required to build {folder.name}. Install Go 1.26.")
    # Garbage collection takes an eighth of the compiler's time; memory is not scarce.
    environment = {"GOGC": "400", **os.environ, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    with subprocess.Popen(
        [command, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=environment,
    ) as build:  # fmt: skip
        _BUILDS.add(build)
        output, errors = build.communicate()
        _BUILDS.discard(build)
    if build.returncode == 0:
        return output
    last = "\n".join(errors.strip().splitlines()[-_TAIL:])
    hint = (
        "Free some disk space" if "no space left" in last else "Check the network and the Go proxy settings"
    )
    raise SetupError(f"go {arguments[0]} failed in {folder}:\n{last}\n{hint}.")


def build(folder: Path, target: Path, variables: str, *packages: str, tags: str = "") -> None:
    """Build programs of a module's folder into `target`, a file, or for several a folder.

    `variables` are flags of the linker that set variables of the programs, `tags` build constraints. Debug
    information is left out, which saves 9 % of a build's time. Raises SetupError as `go` does.
    """
    flags = ("-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {variables}", "-tags", tags)
    go(folder, "build", *flags, "-o", str(target), *packages)


def stop_building() -> None:
    """End builds of other threads, with their compilers."""
    for process in list(_BUILDS):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
