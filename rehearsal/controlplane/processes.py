"""Child processes of a control plane; none outlives its parent, and errors include the log."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rehearsal.controlplane.certificates import Authority

_PR_SET_PDEATHSIG = 1
_GIVEN = ("PATH", "GOGC", "GOMAXPROCS")
_POLL_S = 0.05
_TAIL = 12
_LIBC = ctypes.CDLL(None, use_errno=True)


class StartError(Exception):
    """A process of the control plane did not start; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 without a listener."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Processes:
    """Child processes, ended in the reverse order of their start.

    Start them in the main thread of a long-lived process: the kernel kills them when that thread ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start a process with a log `<name>.log`; it gets PATH, settings of Go and `env`."""
        own = {"HOME": str(self._folder), "TMPDIR": str(self._folder)}
        given = {key: os.environ[key] for key in _GIVEN if key in os.environ}
        with self._log(name).open("ab") as log:
            self._children[name] = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**given, **own, **(env or {})},
                start_new_session=True,  # Ctrl-C in the terminal must not reach it
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - nothing else runs in this process yet
            )

    def wait(self, name: str, ready: Callable[[], bool], patience_s: float) -> None:
        """Wait until a process is ready. Raises StartError when it ends or on a timeout."""
        deadline = time.monotonic() + patience_s
        while not ready():
            ended = self._children[name].poll()
            if ended is not None:
                raise StartError(f"{name} ended with exit code {ended}:\n{self._tail(name)}")
            if time.monotonic() > deadline:
                raise StartError(f"{name} was not ready after {patience_s:.0f} s:\n{self._tail(name)}")
            time.sleep(_POLL_S)

    def ended(self) -> str:
        """Name of a process that has exited, empty when all run."""
        return next((name for name, child in self._children.items() if child.poll() is not None), "")

    def stop(self, name: str = "", patience_s: float = 5.0) -> None:
        """End one process, if it runs, or all: SIGTERM first, then SIGKILL."""
        ending = [each for each in reversed(self._children) if name in ("", each)]
        for child in map(self._children.__getitem__, ending):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        for each in ending:
            child = self._children.pop(each)
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _tail(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL:]) or "(it left no log)"


@dataclass(frozen=True)
class StartContext:
    """Folder, processes, binaries and authority of a control plane that is started."""

    home: Path
    processes: Processes
    binaries: Mapping[str, Path]
    authority: Authority


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
