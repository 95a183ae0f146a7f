"""Run one program of a job: keep the end of its error output, forward the service's signals to it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Self

KEPT_BYTES = 65536  # of the error output: several tracebacks of several ranks
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
POLL_S = 0.5
DRAINED_S = 2.0  # limit for children that still write to an ended program's error output
NOT_STARTED, BY_SIGNAL = 127, 128  # as in shells


@dataclass(frozen=True, kw_only=True)
class ProgramExit:
    """End of a program: exit code as in shells, the signal that ended it, its last error output."""

    code: int
    killed_by: int | None = None
    last: tuple[str, ...] = ()


class Supervisor:
    """Context that forwards signals to the running program; `stopped` is the first that requests an end."""

    def __init__(self) -> None:
        self.stopped: signal.Signals | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in PASSED_ON:
            self._before[number] = signal.signal(number, self._pass_on)
        # A Ctrl-C reaches the program by itself. No SIG_IGN: the program would inherit it.
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        tick: Callable[[], None] = lambda: None,
    ) -> ProgramExit:
        """Run a program to its end in a folder; `tick` is called twice a second.

        It does not start after the service has requested an end.
        """
        self._early.clear()
        if self.stopped is not None:
            return ProgramExit(code=BY_SIGNAL + self.stopped)
        try:
            child = subprocess.Popen(command, env=dict(environment), cwd=folder, stderr=subprocess.PIPE)
        except OSError as error:
            return ProgramExit(code=NOT_STARTED, last=(f"{command[0]}: {error.strerror}",))
        assert child.stderr is not None
        text = _Words(child.stderr)
        self._child = child
        for number in self._early:  # received between the start and this moment
            child.send_signal(number)
        code: int | None = None
        while code is None:
            try:
                code = child.wait(POLL_S)
            except subprocess.TimeoutExpired:
                tick()
        self._child = None
        last = text.last()
        return ProgramExit(
            code=code if code >= 0 else BY_SIGNAL - code, killed_by=-code if code < 0 else None, last=last
        )

    def _note(self, number: int, _: FrameType | None) -> None:
        if number in ENDING and self.stopped is None:
            self.stopped = signal.Signals(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._note(number, frame)
        if self._child is not None:
            self._child.send_signal(number)
        else:
            self._early.append(number)


class _Words(threading.Thread):
    """Forwards the error output of a program and keeps its end."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__(name="job-words", daemon=True)
        self._source = source
        self._kept = bytearray()
        self.start()

    def run(self) -> None:
        """Read until the program and its children have closed the output."""
        while block := os.read(self._source.fileno(), KEPT_BYTES):
            self._kept += block
            del self._kept[:-KEPT_BYTES]
            try:
                sys.stderr.buffer.write(block)
                sys.stderr.buffer.flush()
            except OSError:  # the reader is gone; the program must not notice
                continue

    def last(self) -> tuple[str, ...]:
        """Return the last lines written."""
        self.join(DRAINED_S)
        return tuple(bytes(self._kept).decode(errors="replace").splitlines())
