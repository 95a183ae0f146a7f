"""Stopwatches of a training step: sections that follow each other without a gap.

`HostMarks` reads the clock of this thread. `DeviceMarks` records CUDA events, because there the host only
enqueues work and runs ahead of it.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch

DATA, COMPUTE, EXPOSED, CHECKPOINT, OTHER = range(5)


class StepTimes(NamedTuple):
    """Seconds of one step; `total` is measured by itself, not added up."""

    data: float
    compute: float
    exposed: float
    checkpoint: float
    other: float
    total: float


Pending = Callable[[], list[StepTimes]]
"""Return the times of some steps; may wait for the device."""


class HostMarks:
    """Wall seconds of the calling thread."""

    def __init__(self) -> None:
        self._steps: list[StepTimes] = []
        self.begin()

    def begin(self) -> None:
        """Discard the time before the first step."""
        self._spent, self.section = [0.0] * 5, OTHER
        self._at = self._began = time.perf_counter()

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned."""
        now, before = time.perf_counter(), self.section
        self._spent[before] += now - self._at
        self.section, self._at = section, now
        return before

    def end_step(self) -> None:
        """End a step and begin the next one."""
        self.enter(OTHER)
        now = time.perf_counter()
        self._steps.append(StepTimes._make([*self._spent, now - self._began]))
        self._spent = [0.0] * 5
        self._at = self._began = now

    def take(self) -> Pending:
        """Return the steps since the last call."""
        taken, self._steps = self._steps, []
        return lambda: taken


Events = list[tuple[int, "torch.cuda.Event"]]
"""Sections of the device with their start events; the last one is the end of the step."""


class DeviceMarks:
    """Events on the current stream of the current CUDA device.

    A section lasts from when the device reaches its first event until it reaches the next section's. Host
    waits cost nothing while the device has work; the section that leaves the device idle is charged: copying
    a batch to a busy device waits for it, although no data were late.
    """

    def __init__(self) -> None:
        self._ended: list[Events] = []
        self._free: deque[torch.cuda.Event] = deque()  # making an event costs more than recording it
        self.begin()

    def begin(self) -> None:
        """Discard the time before the first step."""
        self.section, self._events = DATA, [(DATA, self._now())]

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned; no event inside of a captured graph."""
        before = self.section
        capturing = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
        if section != before and not capturing:
            self.section = section
            self._events.append((section, self._now()))
        return before

    def end_step(self) -> None:
        """End a step and begin the next one."""
        last = DATA, self._now()  # a step begins with the request for its batch
        self._ended.append([*self._events, last])
        self.section, self._events = DATA, [last]

    def take(self) -> Pending:
        """Return the steps since the last call."""
        ended, self._ended = self._ended, []

        def steps() -> list[StepTimes]:
            if ended:
                ended[-1][-1][1].synchronize()
            found = [_resolved(events) for events in ended]
            # The last event of a step is the first of the next one.
            self._free.extend(event for events in ended for _, event in events[:-1])
            return found

        return steps

    def _now(self) -> "torch.cuda.Event":
        try:
            event = self._free.popleft()
        except IndexError:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event


def _resolved(events: Events) -> StepTimes:
    """Section lengths from event distances, which CUDA gives in milliseconds."""
    spent = [0.0] * 5
    for (section, begin), (_, end) in itertools.pairwise(events):
        spent[section] += float(begin.elapsed_time(end)) / 1e3
    return StepTimes._make([*spent, float(events[0][1].elapsed_time(events[-1][1])) / 1e3])
