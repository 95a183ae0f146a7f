"""Runs a command and announces the checkpoints that it writes, for loops that do not do so themselves."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from smoke_training.runtime.announcement import UnsaidError, announce

SETTLED_S = 30.0
"""A checkpoint is whole when nothing below its folder has changed for so long."""
_POLL_S = 10.0
# What Kubernetes and launchers send. A Ctrl-C reaches the command by itself.
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_NOT_FOUND, _REFUSED, _BY_SIGNAL = 127, 126, 128  # as shells say it


class Announcer:
    """Looks at a folder again and again, and announces what is new in it and whole.

    What is there at the beginning is of another run. Clocks are never compared: that of a file system may be
    ahead.
    """

    def __init__(
        self,
        folder: Path,
        settled_s: float = SETTLED_S,
        say: Callable[[float], bool] = announce,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._settled_s, self._say, self._clock = folder, settled_s, say, clock
        self._said = self._seen = newest(folder)
        self._since = clock()
        self._complained = ""

    def look(self) -> None:
        """Announce the newest change once it has settled; what stands against it is told, and tried again."""
        found = newest(self._folder)
        if found != self._seen:
            self._seen, self._since = found, self._clock()
        new = found is not None and (self._said is None or found > self._said)
        if found is None or not new or self._clock() < self._since + self._settled_s:
            return
        try:
            if not self._say(found):
                self._complain("this pod has no token for its own annotation: no checkpoint is announced")
        except UnsaidError as error:
            self._complain(f"the time of the checkpoint was not announced: {error}")
        else:
            self._said = found

    def _complain(self, words: str) -> None:
        if words != self._complained:
            self._complained = words
            sys.stderr.write(f"announce: {words}\n")


def newest(folder: Path) -> float | None:
    """When a file below a folder changed last, in seconds since 1970; None where there is none."""
    found = None
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found = max(found or 0.0, path.stat().st_mtime)
        except OSError:  # Deleted in between.
            continue
    return found


def run(command: Sequence[str], announcer: Announcer, poll_s: float = _POLL_S) -> int:
    """Run a command to its end: its exit code, as a shell tells it. Signals for it are passed on."""
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        if running:
            running[0].send_signal(number)
        else:
            early.append(number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    # No `SIG_IGN`: the command would inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"announce: {command[0]}: {error.strerror}\n")
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _REFUSED
    running.append(child)
    for received in early:
        child.send_signal(received)
    while True:
        try:
            code = child.wait(poll_s)
        except subprocess.TimeoutExpired:
            announcer.look()
        else:
            return code if code >= 0 else _BY_SIGNAL - code
