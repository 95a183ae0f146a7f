"""An engine operation with its progress, which Ctrl-C ends in an orderly way."""

import signal
import threading
from collections.abc import Callable

from infra.cli.progress import Progress
from infra.engine.stack import EngineStack, OnEvent, Outcome


def watched(engine: EngineStack, title: str, operation: Callable[[OnEvent], Outcome]) -> Outcome:
    """Run an operation with progress; Ctrl-C asks the engine to finish what it has begun."""
    done: list[Outcome | BaseException] = []
    finished = threading.Event()
    interrupts = 0

    def run() -> None:
        try:
            done.append(operation(progress.take))
        except BaseException as error:
            done.append(error)
        finished.set()

    def interrupt(*_: object) -> None:
        # A handler that raised could do so anywhere, also between the end of the engine and its record.
        nonlocal interrupts
        interrupts += 1
        progress.say("stopping: the engine finishes what it has begun; once more to stop at once")
        engine.cli.signal(signal.SIGINT if interrupts < 3 else signal.SIGKILL)

    with Progress(title) as progress:
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
