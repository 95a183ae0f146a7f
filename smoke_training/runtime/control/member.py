"""The launcher of any node but the first: join, report, follow node 0."""

import dataclasses
import time
from collections.abc import Callable

from smoke_training.evidence.world import NodeFacts
from smoke_training.plan import Plan
from smoke_training.reader import decode
from smoke_training.runtime.control.channel import ChannelCaller, ChannelEvent, Message, hello
from smoke_training.runtime.control.session import (
    BEAT_S,
    FAREWELL_S,
    SETTLE_S,
    TICK_S,
    Line,
    NodeReport,
    ObservedTime,
    Over,
    RunEndedError,
)

ANSWER_MARGIN_S = 30.0  # node 0 may start so much later than its callers


class Member:
    """Any other node."""

    def __init__(self, plan: Plan, index: int, caller: ChannelCaller, word: str) -> None:
        self.plan, self.index, self._caller, self._word = plan, index, caller, word
        self.lines: list[Line] = []
        self.planned = False
        self.over_message: Over | None = None
        self._time = ObservedTime()
        self._last_message_at = 0.0
        self._next_beat, self._urgent = 0.0, tuple[object, ...]()
        self._refused: str | None = None
        self._left_early = True  # until its ranks have finished

    def join(self, own: Callable[[], NodeFacts], deadline: float) -> None:
        """Join until node 0 starts all; RunEndedError with its reason, or for no response."""
        until = min(time.monotonic() + self.plan.join_timeout_s + SETTLE_S + ANSWER_MARGIN_S, deadline)
        next_look = 0.0
        while (now := time.monotonic()) < until:
            if now >= next_look:
                self._caller.greet(hello(self._word, self.index, dataclasses.asdict(own())))
                next_look = now + 1.0
            for event in self._caller.poll(now):
                if event.kind == "gone":
                    if self._refused:
                        raise RunEndedError(self._refused)
                    self._caller.redial()
                    break
                if event.message.get("type") == "go":
                    self._last_message_at = self._time.at(now)
                    return
                self._ordered(event)
            time.sleep(TICK_S)
        raise RunEndedError(self._refused or f"node 0 did not let node {self.index} start in time")

    def tick(self, own: NodeReport) -> None:
        """Report, and follow orders; RunEndedError when node 0 ends the run, vanishes or falls silent."""
        now = time.monotonic()
        observed = self._time.at(now)
        if now >= self._next_beat or own.urgent != self._urgent:
            self._next_beat, self._urgent = now + BEAT_S, own.urgent
            self._caller.send({"type": "beat", "report": dataclasses.asdict(own)})
        for event in self._caller.poll(now):
            self._last_message_at = observed
            if event.kind == "gone":
                raise RunEndedError("the launcher of node 0 vanished")
            self._ordered(event)
        silence = observed - self._last_message_at
        if silence > self.plan.hang_timeout_s:
            raise RunEndedError(f"the launcher of node 0 has been silent for {silence:.0f} s")

    def leave(self, own: NodeReport, ended: str | None) -> None:
        """Announce the end before the ranks are ended, so that their end does not count as a failure."""
        report = dataclasses.asdict(own)
        self._left_early = ended is not None
        self._caller.send({"type": "bye", "ended": ended, "report": report})

    def finish(self, failures: list[Line], deadline: float) -> None:
        """Send failures; wait for the run's outcome while node 0 is connected, at most to the deadline.

        A node that left early waits only as long as node 0 may take to receive all reports.
        """
        self._caller.send({"type": "failures", "lines": list(failures)})
        if self._left_early:
            deadline = min(deadline, time.monotonic() + 2 * FAREWELL_S)
        while self._caller.connected and self.over_message is None and time.monotonic() < deadline:
            for event in self._caller.poll(time.monotonic()):
                if event.message.get("type") == "over":
                    self._ended(event.message)
            time.sleep(TICK_S)
        self._caller.close()

    def _ordered(self, event: ChannelEvent) -> None:
        match event.message.get("type"):
            case "beat":
                self.planned = self.planned or event.message.get("planned") is True
            case "refused":
                reason = event.message.get("reason")
                self._refused = f"node 0 refused node {self.index}: {reason}"
            case "stop":
                raise RunEndedError(f"ended by node 0: {event.message.get('reason')}")
            case "over":
                self._ended(event.message)
                raise RunEndedError(f"ended by node 0: {event.message.get('headline')}")

    def _ended(self, message: Message) -> None:
        try:
            self.over_message = decode(Over, {k: v for k, v in message.items() if k != "type"})
        except TypeError:
            self.over_message = None
