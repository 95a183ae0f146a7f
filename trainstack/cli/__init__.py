"""The `trainstack` command: operations that Pulumi does not have, and short forms of those it has."""

import atexit
import gc
import sys


def main() -> None:
    """Run the command line and end the process with its exit code (`infra.exit_codes`)."""
    # Imported modules hold no garbage: it is collected neither during the imports nor at the end of Python.
    gc.disable()
    atexit.register(gc.freeze)
    from trainstack.cli.app import app  # noqa: PLC0415 - garbage collection is off before
    from trainstack.cli.execution import execute  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    sys.exit(execute(app, sys.argv[1:]))
