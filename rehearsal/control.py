"""Protocol of the rehearsal daemon: one JSON object per line over a private socket.

`{"op": "serve", "package": "aws", "environment": {...}, "engine": pid, "folder": path}` -> `{"port": n}`; the
server lives as long as the connection. Relative paths of assets begin in the folder.
`{"op": "status"}` -> `{"resources": {...}, "workloads": [...], "engines": n}`.
`{"op": "recover", "urns": [...]}` -> `{"taken_back": [ids]}`: cancels requests of killed engines, and
deletes what interrupted creates left behind.
`{"op": "drift", "urn": text, "values": {path: value}}` and `{"op": "delete", "urn": text}` change a
resource without the engine -> `{"urn": ..., "id": ..., "type": ...}`.
`{"op": "seed", "resources": [{"type": ..., "id": ..., "outputs": {...}}]}` registers resources
that no program made -> `{"new": [ids]}`.
`{"op": "hold", "engine": pid}` -> `{}`: the real control plane of the home runs as long as the connection.
`{"op": "locate", "name": text}` -> `{"url": text or null}`: the local URL of an MLflow App (an ARN; it is
started) or of a service of Cloud Run (its address).
`{"op": "serving", "engine": pid}` -> `{}`: the services of the home listen on their `service_ports` as long
as the connection.
`{"op": "stop"}` -> `{}`, workloads and daemon end. An error is `{"error": text}`.

Only the standard library and `isolation` are imported here: every provider of a run starts with this module.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rehearsal import isolation

HOME_VARIABLE = "TRAINSTACK_REHEARSAL_HOME"
LOG = "daemon.log"
_ROOT = Path(__file__).resolve().parents[1]


class ControlError(Exception):
    """The daemon could not be started or did not respond."""

    fix = "Wait for other rehearsals, or run `trainstack rehearse stop`, then repeat the command."


class GoneError(ControlError):
    """The daemon ended before it responded."""


def socket_path(home: Path) -> Path:
    """Path of the socket of a home's daemon."""
    return home / "daemon.sock"


def private(home: Path) -> Path:
    """Make a home with mode 0700, or set that mode. Raises ControlError when another user owns it."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = home.stat()
    if found.st_uid != os.geteuid():
        other = f"{home} belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        raise ControlError(f"{other}; name a home of your own in {HOME_VARIABLE}")
    if found.st_mode & 0o077:
        home.chmod(0o700)
    return home


def peer_uid(sock: socket.socket) -> int:
    """The user at the other end of a local socket, as the kernel noted when it was connected."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


@contextmanager
def listen(home: Path) -> Iterator[socket.socket]:
    """The listening socket of a home's daemon."""
    socket_path(home).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with _short(home) as address:
            listener.bind(address)
        listener.listen(64)
        yield listener


@contextmanager
def _short(home: Path) -> Iterator[str]:
    """The socket's path in a form that the kernel accepts: at most 107 bytes."""
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{socket_path(home).name}"
    finally:
        os.close(folder)


class DaemonConnection:
    """A connection to the daemon; closing it releases its leases."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._file = sock.makefile("rw", encoding="utf-8")

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the response. Raises ControlError, GoneError without a response."""
        try:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
            line = self._file.readline()
        except OSError as error:
            raise GoneError(f"the rehearsal's daemon ended: {error}") from error
        if not line:
            raise GoneError("the rehearsal's daemon ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ControlError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self.socket.close()


def connect(home: Path) -> DaemonConnection | None:
    """A connection to the running daemon, or None without one. Raises ControlError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(home) as address:
            sock.connect(address)
    except OSError:
        sock.close()
        return None
    if peer_uid(sock) != os.geteuid():
        other = f"user {peer_uid(sock)} listens at {socket_path(home)}"
        sock.close()
        raise ControlError(f"{other}, not this user's daemon; name a home of your own in {HOME_VARIABLE}")
    return DaemonConnection(sock)


def ask_running(home: Path, message: dict[str, Any], *, patience_s: float = 60.0) -> dict[str, Any] | None:
    """The response of the running daemon, None without one; waits for a daemon that is ending.

    Raises ControlError.
    """
    deadline = time.monotonic() + patience_s
    while (connection := connect(home)) is not None:
        try:
            return connection.ask(message)
        except GoneError:
            if time.monotonic() > deadline:
                raise
        finally:
            connection.close()
        time.sleep(0.01)
    return None


def lease(
    home: Path, message: dict[str, Any], *, patience_s: float = 60.0
) -> tuple[DaemonConnection, dict[str, Any]]:
    """Send a message to the daemon, started when needed; retries when the daemon ended meanwhile.

    Raises ControlError with the last lines of the daemon's log when it does not start in time.
    """
    deadline = time.monotonic() + patience_s
    while True:
        connection = connect(home) or _start(home, deadline)
        try:
            return connection, connection.ask(message)
        except ControlError as error:
            connection.close()
            if not isinstance(error, GoneError) or time.monotonic() > deadline:
                raise


def _start(home: Path, deadline: float) -> DaemonConnection:
    with exclusive(private(home) / "start.lock", deadline):
        connection = connect(home)
        if connection is not None:  # another process started it first
            return connection
        log = home / LOG
        written = log.stat().st_size if log.exists() else 0
        daemon = _spawn(home)
        while time.monotonic() < deadline:
            connection = connect(home)
            if connection is not None:
                return connection
            if daemon.poll() is not None:
                break
            time.sleep(0.01)
        raise ControlError(f"the rehearsal's daemon did not start:\n{_tail(log, written)}")


def _spawn(home: Path) -> subprocess.Popen[bytes]:
    """Start the daemon, which outlives its parent, with harmless variables only."""
    environment = {
        name: value
        for name, value in isolation.without_credentials(os.environ).items()
        if not name.startswith(("PULUMI_", "PYTHON"))
    }
    with (home / LOG).open("ab") as log:
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


def _tail(log: Path, start: int, lines: int = 20) -> str:
    """The last lines of a log, of those written after `start` bytes."""
    with log.open(errors="replace") as file:
        if log.stat().st_size >= start:  # else the log was rotated
            file.seek(start)
        return "\n".join(file.read().splitlines()[-lines:]) or "(it left no log)"
