"""The `trainstack` command: operations that Pulumi does not have, and short forms of those it has."""

import atexit
import gc
import sys
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run the command line and end the process with its exit code (`infra.exit_codes`)."""
    if refused := unsupported():
        sys.exit(refused)
    # Before the folders of PYTHONPATH, which may have a package `infra` or `policies` of their own.
    sys.path.insert(0, str(_PACKAGES))
    # Imported modules hold no garbage: it is collected neither during the imports nor at the end of Python.
    gc.disable()
    atexit.register(gc.freeze)
    from trainstack.cli.app import app  # noqa: PLC0415 - garbage collection is off before
    from trainstack.cli.execution import execute  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    sys.exit(execute(app, sys.argv[1:]))


def unsupported() -> str:
    """The reason why no command works with this Python or system; "" where most do."""
    version = sys.version_info[:2]
    if not (3, 11) <= version <= (3, 13):
        given = ".".join(map(str, version))
        return f"trainstack needs Python 3.11 to 3.13; this is {given}. Install it again with one of them."
    if sys.platform == "win32":
        return "trainstack needs Linux or macOS. On Windows, install it in WSL."
    return ""
