"""The `trainstack` command: what Pulumi does not have, and a shorter way to what it has."""

import atexit
import gc
import sys

from infra.errors import USAGE_EXIT_CODE, UserError


def main() -> None:
    """Run the command line; a user error is shown without a traceback, with exit code 2."""
    # Garbage is not in what was imported: neither while it is, nor when Python looks once more at the end.
    gc.disable()
    atexit.register(gc.freeze)
    from infra.engine.golang import SetupError  # noqa: PLC0415
    from rehearsal.control import ControlError  # noqa: PLC0415
    from trainstack.cli.app import app  # noqa: PLC0415 - `--help` of a broken checkout still explains itself

    gc.freeze()
    gc.enable()
    try:
        app()
    except UserError as error:
        count = len(error.problems)
        print(f"{count} problem{'s' if count > 1 else ''}; nothing was changed:", file=sys.stderr)  # noqa: T201
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)  # noqa: T201
        sys.exit(USAGE_EXIT_CODE)
    except (SetupError, ControlError) as error:
        sys.exit(str(error))
