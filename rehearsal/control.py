"""How everything else reaches the daemon of a rehearsal: one JSON object per line over a private socket.

`{"op": "serve", "package": "aws", "environment": {...}, "engine": pid}` -> `{"port": n}`; the server lives as
long as the connection. `{"op": "status"}` -> `{"resources": {...}, "workloads": [...], "engines": n}`.
`{"op": "recover", "urns": [...]}` -> `{"taken_back": [ids]}`: ends what killed engines asked for, and deletes
what interrupted creates left behind.
`{"op": "drift", "urn": text, "values": {path: value}}` and `{"op": "delete", "urn": text}` change what exists
behind the engine's back -> `{"urn": ..., "id": ..., "type": ...}`.
`{"op": "stop"}` -> `{}`, workloads and daemon end. A refusal is `{"error": text}`.

Only the standard library is imported here: every provider of every run starts with this module.
"""

import fcntl
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOME_VARIABLE = "TRAINSTACK_REHEARSAL_HOME"
# The kernel refuses longer socket paths (108 bytes with the final zero on Linux, 104 on macOS).
_LONGEST_SOCKET_PATH = 100
_ROOT = Path(__file__).resolve().parents[1]


class ControlError(Exception):
    """The daemon could not be started or did not answer."""


def socket_path(home: Path) -> Path:
    """Where the daemon of `home` listens: in it, or in the temporary folder when its path is too long."""
    path = home / "daemon.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"trainstack-{os.getuid()}-{digest}.sock"


class Connection:
    """One conversation with the daemon; closing it gives back what it was leased."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._file = sock.makefile("rw", encoding="utf-8")

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and wait for its answer. Raises ControlError."""
        try:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
            line = self._file.readline()
        except OSError as error:
            raise ControlError(f"the rehearsal's daemon went away: {error}") from error
        if not line:
            raise ControlError("the rehearsal's daemon went away")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ControlError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """End the conversation."""
        self._file.close()
        self.socket.close()


def connect(home: Path) -> Connection | None:
    """A conversation with the running daemon, or None when there is none."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(str(socket_path(home)))
    except OSError:
        sock.close()
        return None
    return Connection(sock)


def lease(
    home: Path, message: dict[str, Any], *, patience_s: float = 20.0
) -> tuple[Connection, dict[str, Any]]:
    """Ask the daemon, starting it when needed; it may be about to exit, so a lost answer is asked for again.

    Raises ControlError with the last lines of the daemon's log when it does not come up in time.
    """
    deadline = time.monotonic() + patience_s
    while True:
        connection = connect(home) or _start(home, deadline)
        try:
            return connection, connection.ask(message)
        except ControlError as error:
            connection.close()
            if "went away" not in str(error) or time.monotonic() > deadline:
                raise


def _start(home: Path, deadline: float) -> Connection:
    home.mkdir(parents=True, exist_ok=True)
    with exclusive(home / "start.lock", deadline):
        connection = connect(home)
        if connection is not None:  # somebody else was faster
            return connection
        daemon = _spawn(home)
        while time.monotonic() < deadline:
            connection = connect(home)
            if connection is not None:
                return connection
            if daemon.poll() is not None:
                break
            time.sleep(0.01)
        raise ControlError(f"the rehearsal's daemon did not start:\n{_tail(home / 'daemon.log')}")


def _spawn(home: Path) -> subprocess.Popen[bytes]:
    """The daemon outlives whoever starts it, so it takes nothing of theirs along but the environment."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "PYTHON"))
    }
    with (home / "daemon.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "rehearsal.daemon", str(home)],
            cwd=_ROOT,
            env={**environment, HOME_VARIABLE: str(home)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@contextmanager
def exclusive(path: Path, deadline: float) -> Iterator[None]:
    """Hold a lock file that the kernel frees with the process. Raises ControlError after `deadline`."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ControlError(f"{path} is held by another process") from error
                time.sleep(0.02)
        yield


def _tail(log: Path, lines: int = 20) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(it left no log)"
