"""One command of one stack: a process with an environment of its own, ended with its parent."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from infra.places import PACKAGES

# The parent holds the other end of a pipe, which the kernel closes however it ends. An operation that runs
# then finishes its running steps, as after Ctrl-C; a shell's background processes would ignore that.
# Without `-I`, packages of the client's folder would come first.
_WATCH = """\
import os, signal, sys, threading
def ended(fd):
    os.read(fd, 1)
    os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=ended, args=(int(sys.argv.pop(1)),), daemon=True).start()
sys.path.insert(0, sys.argv.pop(1))
"""
PROGRAM = """\
from trainstack.cli import main
main()
"""
_GRACE_S = 60.0
"""Seconds for a process to end after a signal, before the next one."""
_LARGEST = 64 << 20
_LAST_BYTES = 64 << 10


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    """Exit code, negative for a signal."""
    output: str
    log: str
    """The end of its standard error."""
    seconds: float
    timed_out: bool = False
    interrupted: bool = False

    @property
    def document(self) -> Mapping[str, object] | None:
        """The JSON document that it printed; None without one."""
        try:
            found = json.loads(self.output)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


class Child:
    """A running command. It is started by `run`, and other threads may interrupt it."""

    def __init__(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], logs: Path) -> None:
        self._words, self._folder, self._variables = words, folder, variables
        self._files = logs / "output.json", logs / "log.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._interrupts = 0
        self._lock = threading.Lock()

    def run(self, limit_s: float | None, held: Sequence[int] = ()) -> Ended:
        """Run it to its end, at most `limit_s` seconds.

        `held`: file descriptors that it holds open as long as it runs, also when this process is killed.
        Raises OSError where it cannot be started.
        """
        started = time.monotonic()
        reader, writer = os.pipe()
        output, log = self._files
        try:
            with output.open("wb") as out, log.open("wb") as error, self._lock:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-c", _WATCH + PROGRAM, str(reader), str(PACKAGES), *self._words],
                    cwd=self._folder, env=dict(self._variables), stdin=subprocess.DEVNULL, stdout=out,
                    stderr=error, start_new_session=True, pass_fds=(reader, *held),
                )  # fmt: skip
                if self._interrupts:
                    self._process.send_signal(signal.SIGINT)
            timed_out = self._wait(limit_s)
        finally:
            os.close(reader)
            os.close(writer)
        seconds = time.monotonic() - started
        text = output.read_text(errors="replace") if output.stat().st_size <= _LARGEST else ""
        return Ended(self._process.returncode, text, _end(log), seconds, timed_out, self._interrupts > 0)

    def said(self) -> str:
        """The last line that it has written so far, to standard output or error; empty before the first."""
        files = [one for one in self._files if one.exists() and one.stat().st_size]
        return (
            _end(max(files, key=lambda one: one.stat().st_mtime_ns)).rstrip().rpartition("\n")[2]
            if files
            else ""
        )

    def interrupt(self) -> None:
        """Interrupt it: the engine finishes its steps, stops at once the second time, is killed the third."""
        with self._lock:
            self._interrupts += 1
            if self._process is None or self._process.poll() is not None:
                return
            if self._interrupts < 3:
                self._process.send_signal(signal.SIGINT)
            else:
                _kill(self._process.pid)

    def _wait(self, limit_s: float | None) -> bool:
        """Wait for its end; return whether it ran past its limit."""
        assert self._process
        try:
            self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            for number in (signal.SIGINT, signal.SIGINT, None):
                if number is None:
                    _kill(self._process.pid)
                else:
                    self._process.send_signal(number)
                try:
                    self._process.wait(_GRACE_S)
                    break
                except subprocess.TimeoutExpired:
                    continue
            self._process.wait()
            return True
        return False


def _end(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        return file.read().decode(errors="replace")


def _kill(pid: int) -> None:
    """Kill a process and its descendants, some of which have sessions of their own."""
    try:
        root = psutil.Process(pid)
        for one in [root, *root.children(recursive=True)]:
            one.kill()
    except psutil.Error:
        pass
