"""The process that emulates the clouds of a rehearsal: `python -m rehearsal.daemon HOME`.

It starts on demand and ends once no engine is connected and no workload runs. Its protocol is in `control`.
"""

import importlib
import logging
import os
import sys
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from infra.engine.protocol import leave_out_sdk
from infra.errors import UserError
from rehearsal import control

_LOG_BYTES, _LOGS_KEPT = 1_000_000, 3


class _Log(RotatingFileHandler):
    """The daemon's log and its standard error in one file, of which the last few are kept."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_LOG_BYTES, backupCount=_LOGS_KEPT)
        self.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
        return stream


def main() -> None:
    """Run until idle or stopped; the exit status is 1 when the home cannot be used."""
    home = Path(sys.argv[1])
    os.umask(0o077)
    try:
        control.private(home)
        logging.basicConfig(handlers=[_Log(home / control.LOG)], level=logging.INFO)
        logging.info("the daemon of %s starts", home)
        # The previous daemon may still be closing its files.
        with control.exclusive(home / "daemon.lock", time.monotonic() + 10):
            leave_out_sdk()
            importlib.import_module("rehearsal.core.server").Server(home).run()
    except (UserError, control.ControlError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
