"""The live table of a fleet command; without a terminal a line per ended stack."""

import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from infra.engine.console import new_console
from trainstack.cli.output import printable
from trainstack.fleet.outcome import StackOutcome, State
from trainstack.fleet.report.document import headline
from trainstack.fleet.stacks import FleetStack

_STYLES = {State.DONE: "green", State.NOT_STARTED: "dim"}
_QUIET_S = 30.0


class LiveTable:
    """Shows the running stacks and the last ended ones on standard error."""

    def __init__(self, command: str, total: int) -> None:
        self._command, self._total = command, total
        self._console = new_console(stderr=True)
        self._running: dict[str, float] = {}
        self._waiting: dict[str, str] = {}
        self._ended: list[StackOutcome] = []
        self._lock = threading.RLock()
        self._start = self._reported = time.monotonic()
        self._live = Live(
            console=self._console, refresh_per_second=4, transient=True, get_renderable=self._view
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def started(self, stack: FleetStack) -> None:
        """Show that a stack's command runs."""
        with self._lock:
            self._waiting.pop(stack.id, None)
            self._running[stack.id] = time.monotonic()

    def waits(self, stack: FleetStack, reason: str) -> None:
        """Show that a stack waits."""
        with self._lock:
            self._running.pop(stack.id, None)
            new = self._waiting.get(stack.id) != reason
            self._waiting[stack.id] = reason
        if new and not self._console.is_terminal:
            self._line(f"{stack.id}: {reason}")

    def ended(self, outcome: StackOutcome) -> None:
        """Show an outcome."""
        with self._lock:
            self._running.pop(outcome.id, None)
            self._waiting.pop(outcome.id, None)
            self._ended.append(outcome)
            count = len(self._ended)
        if not self._console.is_terminal and outcome.state is not State.NOT_STARTED:
            text = f"{outcome.state.value} in {outcome.seconds:.0f} s: {headline(self._command, outcome)}"
            self._line(f"[{count}/{self._total}] {outcome.id}: {text}")

    def note(self, text: str) -> None:
        """Print a line above the table."""
        self._line(text)

    def tick(self) -> None:
        """Print progress without a terminal, also when nothing ends."""
        now = time.monotonic()
        if not self._console.is_terminal and now - self._reported >= _QUIET_S:
            with self._lock:
                running = ", ".join(self._running) or "none"
                self._line(f"{len(self._ended)} of {self._total} ended; running: {running}")

    def _line(self, text: str) -> None:
        self._reported = time.monotonic()
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _view(self) -> Group:
        with self._lock:
            now = time.monotonic()
            counts = Counter(one.state.value for one in self._ended)
            ended = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
            parts = f"{len(self._ended)} of {self._total} ({ended or 'none ended'})"
            head = f"{self._command}: {parts}, {now - self._start:.0f} s"
            table = Table.grid(padding=(0, 2, 0, 0), expand=True)
            for _ in range(3):
                table.add_column(no_wrap=True)
            table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
            room = max(3, self._console.height - 3)
            shown = self._ended[-max(0, room - len(self._running) - len(self._waiting)) :]
            for one in shown:
                state = Text(one.state.value, style=_STYLES.get(one.state, "red"))
                table.add_row(
                    one.id, state, f"{one.seconds:.0f} s", Text(printable(headline(self._command, one)))
                )
            for name, reason in self._waiting.items():
                table.add_row(name, Text("waiting", style="yellow"), "", Text(reason))
            for name, since in self._running.items():
                table.add_row(name, Text("running", style="cyan"), f"{now - since:.0f} s", "")
            return Group(Text(head, style="bold"), table)
