"""Stopwatches of a training step: sections that follow each other without a gap.

`HostMarks` reads the clock of this thread. `DeviceMarks` records CUDA events, because there the host only
hands out work and is long ahead when it is done (untested on hardware).
"""

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

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


class Pending(Protocol):
    """Steps whose times may not be known yet."""

    def steps(self) -> list[Step]:
        """The times, waiting for the device if need be."""


class Known:
    """Steps whose times are known."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    def steps(self) -> list[Step]:
        """The times."""
        return self._steps


class HostMarks:
    """Wall seconds of the calling thread."""

    def __init__(self) -> None:
        self._spent = [0.0] * 5
        self._section = OTHER
        self._steps: list[Step] = []
        self._at = self._began = time.perf_counter()

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned."""
        now, before = time.perf_counter(), self._section
        self._spent[before] += now - self._at
        self._section, self._at = section, now
        return before

    def begin(self) -> None:
        """Forget what came before the first step."""
        self._spent = [0.0] * 5
        self._section = OTHER
        self._at = self._began = time.perf_counter()

    def end_step(self) -> None:
        """A step ends here and the next one begins."""
        self.enter(OTHER)
        data, compute, exposed, checkpoint, other = self._spent
        now = time.perf_counter()
        self._steps.append(Step(data, compute, exposed, checkpoint, other, now - self._began))
        self._spent = [0.0] * 5
        self._at = self._began = now

    def take(self) -> Pending:
        """The steps since the last call."""
        taken, self._steps = self._steps, []
        return Known(taken)


class _DeviceStep(NamedTuple):
    events: list[tuple[int, "torch.cuda.Event"]]
    waited: float  # host seconds in the loader
    saved: float  # host seconds in checkpoints


class DeviceMarks:
    """Events on the current stream of the current CUDA device. Untested on hardware.

    The device has three sections: compute, exposed, and idle. Idle time is lost to data as far as the host
    was waiting for the loader meanwhile, then to checkpoints, and the rest to whatever else the loop does.
    """

    def __init__(self) -> None:
        self._section, self._at = OTHER, time.perf_counter()
        self._host = [0.0] * 5
        self._steps: list[_DeviceStep] = []
        self._events: list[tuple[int, torch.cuda.Event]] = []

    def begin(self) -> None:
        """Forget what came before the first step."""
        self._host, self._section, self._at = [0.0] * 5, OTHER, time.perf_counter()
        self._events = [(OTHER, _event())]

    def enter(self, section: int) -> int:
        """Begin a section and end the one before, which is returned."""
        now, before = time.perf_counter(), self._section
        self._host[before] += now - self._at
        self._section, self._at = section, now
        if section in (COMPUTE, EXPOSED) or before in (COMPUTE, EXPOSED):
            self._events.append((section, _event()))
        return before

    def end_step(self) -> None:
        """A step ends here and the next one begins."""
        self.enter(OTHER)
        last = _event()
        self._steps.append(
            _DeviceStep([*self._events, (OTHER, last)], self._host[DATA], self._host[CHECKPOINT])
        )
        self._events, self._host = [(OTHER, last)], [0.0] * 5

    def take(self) -> Pending:
        """The steps since the last call."""
        taken, self._steps = self._steps, []
        return _DevicePending(taken)


class _DevicePending:
    def __init__(self, found: list[_DeviceStep]) -> None:
        self._found = found

    def steps(self) -> list[Step]:
        if self._found:
            self._found[-1].events[-1][1].synchronize()
        return [_resolved(step) for step in self._found]


def _resolved(step: _DeviceStep) -> Step:
    """Section lengths from event distances, which CUDA gives in milliseconds."""
    lengths = [
        (section, float(begin.elapsed_time(end)) / 1e3)
        for (section, begin), (_, end) in zip(step.events, step.events[1:], strict=False)
    ]
    total = float(step.events[0][1].elapsed_time(step.events[-1][1])) / 1e3
    return shared_out(lengths, waited=step.waited, saved=step.saved, total=total)


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
