"""Server of a managed service: a process of this machine that serves HTTP at a Unix socket of its folder.

A socket, not a port: only its user can open the folder, so callers must pass the proxy in front of it.
"""

import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rehearsal.workloads.process import ContainerProcess
from rehearsal.workloads.translate import ProcessPlan

SOCKET = "server.sock"
"""Path of the socket, relative to the folder in which the server starts."""
_TICK_S, _GRACE_S, _LINES = 0.2, 5.0, 20


class ServerStartError(Exception):
    """The server did not start; the message has the end of its log."""


class ServerProcess:
    """Runs from construction to `end`; `plan` must make it listen at `SOCKET` of the folder."""

    def __init__(self, folder: Path, plan: Callable[[Path], ProcessPlan]) -> None:
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / SOCKET).unlink(missing_ok=True)
        self._folder, self.log = folder, folder / "log"
        # The path of a socket may have 107 bytes only, and that of a folder here can be longer.
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._process = ContainerProcess(plan(folder), self.log, (), _GRACE_S)

    @property
    def socket(self) -> str:
        """Path of the socket."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}/{SOCKET}"

    @property
    def running(self) -> bool:
        """Return whether the server has not ended."""
        return self._process.exit_code() is None

    @property
    def pids(self) -> list[int]:
        """Process ids of the server."""
        return [self._process.supervisor_pid, *self._process.pids()]

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """An HTTP connection to the server with this timeout."""
        return _Connection(self.socket, timeout_s)

    def await_answer(self, path: str, patience_s: float, stopping: threading.Event) -> None:
        """Wait until a GET of `path` returns 200. Raises ServerStartError."""
        deadline = time.monotonic() + patience_s
        while not self._answers(path):
            if self._process.wait(_TICK_S) is not None or time.monotonic() > deadline:
                lines = self.log.read_text(errors="replace").splitlines()[-_LINES:]
                raise ServerStartError("the server did not start:\n" + "\n".join(lines))
            if stopping.is_set():
                raise ServerStartError("the rehearsal's daemon ends")

    def end(self) -> None:
        """End the processes of the server."""
        self._process.kill()
        os.close(self._descriptor)

    def _answers(self, path: str) -> bool:
        with contextlib.closing(self.connection(5.0)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
