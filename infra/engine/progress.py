"""Live progress of an engine operation, and its graceful interruption by Ctrl-C."""

import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pulumi.automation.events import EngineEvent
from rich.console import Console
from rich.live import Live
from rich.text import Text

from infra.engine.console import new_console
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome, plain

# Seconds between progress lines without a terminal.
_QUIET_INTERVAL_S = 5.0
_STEADY = ("same", "read", "refresh")


def short(urn: str) -> str:
    """`aws:ec2/vpc:Vpc dev-aws-vpc` for the URN of that resource."""
    kind = urn.split("::")[2].rsplit("$", 1)[-1]
    return f"{kind.split(':')[-1]} {urn.rsplit('::', 1)[-1]}"


def is_component(urn: str) -> bool:
    """Return whether the URN is that of a component or of the stack, which exist only in the state."""
    return urn.split("::")[2].rsplit("$", 1)[-1].startswith(("trainstack:", "pulumi:pulumi:"))


class Progress:
    """Shows events as they arrive; use as a context manager."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or new_console()
        self._start = time.monotonic()
        self._running: dict[str, float] = {}
        self._done = 0
        self._notes: dict[str, str] = {}
        self._reported = self._start
        self._live = Live(
            console=self._console, refresh_per_second=8, transient=True, get_renderable=self._view
        )

    def __enter__(self) -> Self:
        self._console.print(f"[bold]{self._title}[/bold]")
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
        self._console.print(f"  {self._elapsed():5.1f} s  {self._done} resources done")

    def show(self, text: str) -> None:
        """Print a line above the live part."""
        self._console.print(f"  {self._elapsed():5.1f} s  {text}", soft_wrap=True)

    def take(self, event: EngineEvent) -> None:
        """Process one event of the engine."""
        if event.resource_pre_event:
            metadata = event.resource_pre_event.metadata
            if not is_component(metadata.urn) and metadata.op.value not in _STEADY:
                self._running[metadata.urn] = time.monotonic()
        for ended in (event.res_outputs_event, event.res_op_failed_event):
            if ended:
                self._notes.pop(ended.metadata.urn, None)
                if self._running.pop(ended.metadata.urn, None) is not None:
                    self._done += 1
        if event.res_op_failed_event:
            self.show(f"[red]failed[/red] {short(event.res_op_failed_event.metadata.urn)}")
        diagnostic = event.diagnostic_event
        if diagnostic and diagnostic.severity in ("info", "warning", "info#err"):
            text = plain(diagnostic)
            if diagnostic.ephemeral:
                self._notes[diagnostic.urn or ""] = text
            elif text:
                self.show(text)

    def tick(self) -> None:
        """Print progress without a terminal, also without events."""
        now = time.monotonic()
        if not self._console.is_terminal and now - self._reported >= _QUIET_INTERVAL_S:
            self._reported = now
            self.show(self._state())

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _view(self) -> Text:
        return Text(f"  {self._elapsed():5.1f} s  {self._state()}", overflow="ellipsis", no_wrap=True)

    def _state(self) -> str:
        oldest = sorted(self._running, key=self._running.__getitem__)
        names = ", ".join(short(urn) for urn in oldest[:3]) + (" ..." if len(oldest) > 3 else "")
        parts = [f"{self._done} done", f"{len(oldest)} under way" + (f": {names}" if names else "")]
        waiting = [self._notes[urn] for urn in oldest if self._notes.get(urn)]
        return "  ".join([*parts, *waiting[:1]])


def watched(
    engine: EngineStack,
    title: str,
    operation: Callable[[OnEvent], OperationOutcome],
    *,
    to_stderr: bool = False,
) -> OperationOutcome:
    """Run an operation with progress; on Ctrl-C the engine finishes running steps."""
    done: list[OperationOutcome | BaseException] = []
    finished = threading.Event()
    interrupts = 0

    def run() -> None:
        try:
            done.append(operation(progress.take))
        except BaseException as error:
            done.append(error)
        finished.set()

    def interrupt(*_: object) -> None:
        # Raising here could interrupt any line, also between the end of the engine and its record.
        nonlocal interrupts
        interrupts += 1
        progress.show("stopping: the engine finishes running steps; press again to stop at once")
        engine.cli.signal(signal.SIGINT if interrupts < 3 else signal.SIGKILL)

    with Progress(title, new_console(stderr=to_stderr)) as progress:
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            threading.Thread(target=run).start()
            while not finished.wait(0.2):
                progress.tick()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    result = done[0]
    if isinstance(result, BaseException):
        raise result
    result.interrupted = interrupts > 0
    return result
