"""The plugin `pulumi-resource-<package>`: leases a provider server of the daemon for the engine.

The engine reads the port from the first line of standard output and kills this process in the end; the lease
ends with the connection, however this process ends.
"""

import os
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

from rehearsal import control, isolation


def main(package: str, home: str) -> int:
    """Serve until the engine ends; returns the exit status."""
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    engine = os.getppid()
    request = {
        "op": "serve",
        "package": package,
        "engine": engine,
        "folder": str(Path.cwd()),
        "environment": {name: os.environ[name] for name in isolation.SETTINGS if name in os.environ},
    }
    try:
        connection, answer = control.lease(Path(home), request)
    except control.ControlError as error:
        sys.stderr.write(f"{error}\n")
        return 1

    def leave(_signal: int, _frame: FrameType | None) -> None:
        # An engine whose calls failed may stop its plugins before the loop below has found the cause.
        os._exit(_daemon_ended(connection.socket, 0))

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    sys.stdout.write(f"{answer['port']}\n")
    sys.stdout.flush()
    while os.getppid() == engine:  # a killed engine sends no signal
        if _daemon_ended(connection.socket, 0.5):
            return 1
    return 0


def _daemon_ended(connection: socket.socket, seconds: float) -> bool:
    """Return True, and report it, when the daemon, which never writes here, ends within `seconds`."""
    readable, _, _ = select.select([connection], [], [], seconds)
    if readable:
        os.write(sys.stderr.fileno(), b"the rehearsal's daemon was ended; run the command again\n")
    return bool(readable)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)
