"""Commands of many stacks in bounded numbers: fewer when clouds throttle, none after an interruption."""

import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from infra.errors import UserError
from trainstack.fleet.child import Child
from trainstack.fleet.environment import prepare
from trainstack.fleet.journal import FleetJournal, hold_stack, remove
from trainstack.fleet.outcome import FAILURES, StackOutcome, State, documents, of_ended, of_stack
from trainstack.fleet.stacks import FleetStack

_MB_PER_WORKER = 1000
"""Peak of a preview with all of its processes, rounded up (benchmarks/clients/fleet.py)."""
_ATTEMPTS = 4
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 60.0
_LOOK_S = 0.5


def default_workers() -> int:
    """Stacks at one time, from the CPUs that this process may use and the free memory."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free_mb = psutil.virtual_memory().available // (1 << 20)
    # A preview waits a fifth of its time: for the start of processes, and for clouds.
    return max(1, min(cpus + 1, int(free_mb) // _MB_PER_WORKER, 16))


class FleetProgress(Protocol):
    """Shows the stacks of a running command; called by several threads."""

    def started(self, stack: FleetStack) -> None:
        """Show that a stack's command runs."""

    def waits(self, stack: FleetStack, reason: str) -> None:
        """Show that a stack waits."""

    def ended(self, outcome: StackOutcome) -> None:
        """Show an outcome."""


class Places:
    """A number of places, halved when a cloud throttles, and grown back one by one."""

    def __init__(self, most: int) -> None:
        self.most = self.open = most
        self._taken = self._well = 0
        self._changed = threading.Condition()

    def take(self) -> None:
        """Wait for a place."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken < self.open)
            self._taken += 1

    def give_back(self, *, throttled: bool) -> None:
        """Give a place back, with what its command has seen."""
        with self._changed:
            self._taken -= 1
            self._well = 0 if throttled else self._well + 1
            if throttled:
                self.open = max(1, self.open // 2)
            elif self._well >= 2 * self.open and self.open < self.most:
                self.open, self._well = self.open + 1, 0
            self._changed.notify_all()


@dataclass
class Runner:
    """Runs a command for stacks of a fleet."""

    base: Path
    """Folder of the fleet file."""
    journal: FleetJournal
    progress: FleetProgress
    workers: int
    limit_s: float | None
    """Time limit in seconds of a command that changes nothing."""
    rehearse: bool
    offline: bool = False
    """Whether commands need neither backend nor credentials; true of rehearsals."""
    shell: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by an interruption: nothing more is started."""
    _children: dict[str, Child] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self,
        stacks: Sequence[FleetStack],
        words: Callable[[FleetStack], Sequence[str]],
        *,
        phase: str,
        changes: bool = False,
        stop_after: int | None = None,
    ) -> list[StackOutcome]:
        """The outcomes, in the order of the stacks; those of this phase of a continued run are not repeated.

        `changes`: the command changes the stack, so it has it for itself, and is not repeated when throttled.
        `stop_after`: number of failures after which nothing more is started.
        """
        places, halted, failures = Places(self.workers), threading.Event(), 0

        def one(stack: FleetStack) -> StackOutcome:
            nonlocal failures
            if earlier := self.journal.finished(phase, stack):
                return self._ended(earlier)
            places.take()
            outcome = of_stack(stack, State.NOT_STARTED)
            try:
                if not halted.is_set() and not self.stopped.is_set():
                    outcome = self._tried(stack, phase, [*words(stack)], places, changes=changes)
            except Exception as error:  # such as of its files: other stacks are not affected
                rule = f"{type(error).__name__}: {error}"
                fix = (
                    "Check the files of the client's folder, and the space and rights of the fleet's folder."
                )
                problem = {"code": "command-not-started", "path": "", "rule": rule, "fix": fix}
                outcome = of_stack(stack, State.FAILED, problems=(problem,))
            with self._lock:  # before the next one gets the place
                failures += outcome.state in FAILURES
                if stop_after is not None and failures >= stop_after:
                    halted.set()
            places.give_back(throttled=outcome.throttled)
            return self._ended(outcome)

        with ThreadPoolExecutor(self.workers, thread_name_prefix="fleet") as pool:
            return list(pool.map(one, stacks))

    def interrupt(self) -> None:
        """Start nothing more, and interrupt what runs: gracefully, then at once, then by force."""
        self.stopped.set()
        with self._lock:
            for child in self._children.values():
                child.interrupt()

    def _ended(self, outcome: StackOutcome) -> StackOutcome:
        self.progress.ended(outcome)
        return outcome

    def _tried(
        self, stack: FleetStack, phase: str, words: Sequence[str], places: Places, *, changes: bool
    ) -> StackOutcome:
        """The outcome after as many attempts as throttling needs."""
        digest = stack.digest()
        self.journal.record("start", phase=phase, stack=stack.id)
        outcome = self._once(stack, words, 1, changes=changes)
        pause_s = _FIRST_PAUSE_S
        while (
            outcome.throttled and outcome.state in FAILURES and not changes
            and outcome.attempts < _ATTEMPTS and not self.stopped.is_set()
        ):  # fmt: skip
            self.progress.waits(stack, f"throttled; again in {pause_s:.0f} s")
            places.give_back(throttled=True)
            self.stopped.wait(random.uniform(pause_s, 1.5 * pause_s))  # noqa: S311 - apart from others
            places.take()
            if self.stopped.is_set():
                break
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            outcome = self._once(stack, words, outcome.attempts + 1, changes=changes)
        if outcome.state not in (State.INTERRUPTED, State.NOT_STARTED):
            self.journal.outcome(phase, stack, digest, outcome)
        return outcome

    def _once(self, stack: FleetStack, words: Sequence[str], attempt: int, *, changes: bool) -> StackOutcome:
        held = self._held(stack) if changes else ()
        if held is None:
            return of_stack(stack, State.NOT_STARTED)
        work = self.journal.work(stack)
        try:
            variables = prepare(stack, work, self.base, self.shell, rehearse=self.rehearse or self.offline)
            return self._child(stack, words, attempt, variables, held)
        except UserError as error:
            return of_stack(stack, State.UNUSABLE, attempts=attempt, problems=documents(error.problems))
        finally:
            remove(work)
            for one in held:
                os.close(one)

    def _child(
        self,
        stack: FleetStack,
        words: Sequence[str],
        attempt: int,
        variables: Mapping[str, str],
        held: Sequence[int],
    ) -> StackOutcome:
        logs = self.journal.logs(stack)
        child = Child([*words, "--stack", stack.name], stack.folder, variables, logs)
        with self._lock:
            if self.stopped.is_set():
                return of_stack(stack, State.NOT_STARTED)
            self._children[stack.id] = child
        self.progress.started(stack)
        try:
            ended = child.run(None if held else self.limit_s, held)
        finally:
            with self._lock:
                del self._children[stack.id]
        return of_ended(stack, ended, attempt, str(logs / "log.txt"))

    def _held(self, stack: FleetStack) -> tuple[int, ...] | None:
        """The lock of a stack; None once stopped. A command of a killed fleet may still have it."""
        while (held := hold_stack(self.base, stack)) is None:
            self.progress.waits(stack, "another command of the fleet still changes it")
            if self.stopped.wait(_LOOK_S):
                return None
        return (held,)
