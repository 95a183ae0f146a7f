"""A rank that is stopped or killed from outside at a chosen moment."""

import os
import signal
import time
from dataclasses import dataclass

from tests.faults.injector import Injector, InjectorError
from tests.faults.lab import Run
from tests.faults.system import state_of


@dataclass
class Signal(Injector):
    """Send a signal to one rank `delay_s` after node 0 reported the evidence `after` for the first time."""

    rank: int = 1
    number: signal.Signals = signal.SIGKILL
    after: str = "world"
    delay_s: float = 0.3
    pid: int | None = None
    _due: float | None = None
    _seen: str | None = None

    def watch(self, run: Run) -> None:
        if self.pid is None:
            self._send_when_due(run)
        elif self.number == signal.SIGSTOP:
            # What matters is that it stays stopped until the product ends it.
            self._seen = "T" if state_of(self.pid) == "T" else self._seen
        elif state_of(self.pid) in (None, "Z"):
            self._seen = "gone"

    def _send_when_due(self, run: Run) -> None:
        now = time.monotonic()
        if self._due is None:
            if any(e.get("event") == "measured" and e.get("what") == self.after for e in run.events()):
                self._due = now + self.delay_s
            return
        pid = run.ranks().get(self.rank) if now >= self._due else None
        if pid is not None:
            os.kill(pid, self.number)
            self.pid, self.sent = pid, run.elapsed()

    def prove(self, run: Run) -> str:
        if self.pid is None:
            raise InjectorError(f"no moment came to send {self.number.name} to rank {self.rank}")
        if self._seen is None and not (self.number == signal.SIGKILL and state_of(self.pid) is None):
            raise InjectorError(f"{self.number.name} did nothing to rank {self.rank} (process {self.pid})")
        return (
            f"rank {self.rank} (process {self.pid}) got {self.number.name} {self.sent:.1f} s after the start"
        )
