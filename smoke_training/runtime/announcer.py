"""Run a command and announce its checkpoints, for loops without `instrument`."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from smoke_training.runtime.announcement import AnnotationRefusedError, announce

SETTLED_S = 30.0
"""A checkpoint is complete when nothing below its folder has changed for so long."""
_POLL_S = 10.0
# Signals of Kubernetes and launchers. A Ctrl-C reaches the command by itself.
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_NOT_FOUND, _REFUSED, _BY_SIGNAL = 127, 126, 128  # as in shells


class Announcer:
    """Polls a folder and announces new, complete checkpoints in it.

    Files present at the beginning belong to another run. Clocks are never compared: a file system's may be
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
        """Announce the newest change once it has settled; errors are reported and retried."""
        found = newest(self._folder)
        if found != self._seen:
            self._seen, self._since = found, self._clock()
        new = found is not None and (self._said is None or found > self._said)
        if found is None or not new or self._clock() < self._since + self._settled_s:
            return
        try:
            if not self._say(found):
                self._complain("this pod has no token for its own annotation: no checkpoint is announced")
        except AnnotationRefusedError as error:
            self._complain(f"the time of the checkpoint was not announced: {error}")
        else:
            self._said = found

    def _complain(self, text: str) -> None:
        if text != self._complained:
            self._complained = text
            sys.stderr.write(f"announce: {text}\n")


def newest(folder: Path) -> float | None:
    """Return the time of the last change below a folder, in seconds since 1970; None without files."""
    found = None
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found = max(found or 0.0, path.stat().st_mtime)
        except OSError:  # Deleted in between.
            continue
    return found


def run(command: Sequence[str], announcer: Announcer, poll_s: float = _POLL_S) -> int:
    """Run a command and forward signals to it; return its exit code, as a shell reports it."""
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
