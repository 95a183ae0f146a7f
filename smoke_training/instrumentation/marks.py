"""Stopwatches of a training step: sections that follow each other without a gap.

`HostMarks` reads the clock of this thread. `DeviceMarks` records CUDA events, because there the host only
hands out work and is long ahead when it is done.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

DATA, COMPUTE, EXPOSED, CHECKPOINT, OTHER = range(5)


class Step(NamedTuple):
    """Seconds of one step; `total` is measured by itself, not added up."""

    data: float
    compute: float
    exposed: float
    checkpoint: float
    other: float
    total: float


Pending = Callable[[], list[Step]]
"""Gives the times of some steps, waiting for the device if need be."""


class HostMarks:
    """Wall seconds of the calling thread."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.begin()

    def begin(self) -> None:
        """Forget what came before the first step."""
        self._spent, self._section = [0.0] * 5, OTHER
        self._at = self._began = time.perf_counter()

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned."""
        now, before = time.perf_counter(), self._section
        self._spent[before] += now - self._at
        self._section, self._at = section, now
        return before

    def end_step(self) -> None:
        """A step ends here and the next one begins."""
        self.enter(OTHER)
        now = time.perf_counter()
        self._steps.append(Step._make([*self._spent, now - self._began]))
        self._spent = [0.0] * 5
        self._at = self._began = now

    def take(self) -> Pending:
        """The steps since the last call."""
        taken, self._steps = self._steps, []
        return lambda: taken


Events = list[tuple[int, "torch.cuda.Event"]]
"""Sections of the device and where they begin; the last is where the step ends."""


class DeviceMarks(HostMarks):
    """Events on the current stream of the current CUDA device.

    The device has three sections: compute, exposed, and idle. Idle time is lost to data as far as the host
    was waiting for the loader meanwhile, then to checkpoints, and the rest to whatever else the loop does.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ended: list[Events] = []

    def begin(self) -> None:
        """Forget what came before the first step."""
        super().begin()
        self._events: Events = [(OTHER, _event())]

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned."""
        before = super().enter(section)
        if section in (COMPUTE, EXPOSED) or before in (COMPUTE, EXPOSED):
            self._events.append((section, _event()))
        return before

    def end_step(self) -> None:
        """A step ends here and the next one begins."""
        super().end_step()
        last = OTHER, _event()
        self._ended.append([*self._events, last])
        self._events = [last]

    def take(self) -> Pending:
        """The steps since the last call."""
        ended, self._ended, host = self._ended, [], super().take()

        def steps() -> list[Step]:
            if ended:
                ended[-1][-1][1].synchronize()
            return [_resolved(*pair) for pair in zip(ended, host(), strict=True)]

        return steps


def _resolved(events: Events, host: Step) -> Step:
    """Section lengths from event distances, which CUDA gives in milliseconds."""
    lengths = [
        (section, float(begin.elapsed_time(end)) / 1e3)
        for (section, begin), (_, end) in itertools.pairwise(events)
    ]
    total = float(events[0][1].elapsed_time(events[-1][1])) / 1e3
    return shared_out(lengths, waited=host.data, saved=host.checkpoint, total=total)


def shared_out(lengths: Sequence[tuple[int, float]], *, waited: float, saved: float, total: float) -> Step:
    """A step from its device sections and from what the host waited for while the device was idle."""
    compute = sum(length for section, length in lengths if section == COMPUTE)
    exposed = sum(length for section, length in lengths if section == EXPOSED)
    idle = sum(length for section, length in lengths if section not in (COMPUTE, EXPOSED))
    data = min(waited, idle)
    checkpoint = min(saved, idle - data)
    return Step(data, compute, exposed, checkpoint, idle - data - checkpoint, total)


def _event() -> "torch.cuda.Event":
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
