"""Measure noise of the machines: a fixed amount of work per rank without any waiting.

No more ranks of a node spin at once than it has CPUs, so that disturbances of the spins come from outside
this run: a neighbour, a hypervisor, a quota, a clock.
"""

import time
import timeit
from collections.abc import Iterator

import torch

from smoke_training.evidence import Record
from smoke_training.evidence.training import Fitness, MachineWindow
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.stopwatch import Series
from smoke_training.runtime import host
from smoke_training.runtime.window import WindowReader

SPIN_SECONDS = 0.004  # longer than a scheduler's slice is, so that a neighbour shows in every spin
SPINS, SPINS_FULL = 50, 100
SPINS_BETWEEN = 15  # between the looks of a long measurement
_TURNS = 20_000


class Spinner:
    """The same work on every rank, in waves, so that no node runs more ranks than CPUs."""

    def __init__(self, group: Group) -> None:
        self.group = group
        fastest = min(timeit.repeat(lambda: _spin(_TURNS), number=1))
        self.turns = max(1, min(group.gather(round(_TURNS * SPIN_SECONDS / fastest))))  # agreed on once
        found = group.gather((group.node, host.usable_cpus()))
        self.waves = max(-(-sum(other == node for other, _ in found) // cpus) for node, cpus in found)

    def run(self, spins: Series, count: int) -> None:
        """`count` spins of every rank, wave by wave; all ranks must call it."""
        for wave in range(self.waves):
            self.group.barrier()
            if wave == self.group.local_rank % self.waves:
                for _ in range(count):
                    with spins.timed():
                        _spin(self.turns)
        self.group.barrier()


def measure(context: ProbeContext) -> Iterator[Record]:
    """The `fitness` evidence."""
    group = context.group
    spinner, spins = Spinner(group), Series()
    reader = window_reader(group)
    reader.resume()
    spinner.run(spins, SPINS_FULL if context.full else SPINS)
    reader.pause()
    reader.sample_clock()
    yield Fitness(
        spin=group.rows(spins.wall), spin_queue=group.known_rows(spins.queue), windows=windows(group, reader)
    )


def window_reader(group: Group) -> WindowReader:
    """Start a reader of this rank's machine and GPU."""
    gpu = f"GPU-{torch.cuda.get_device_properties(group.device).uuid}" if group.cuda else None
    return WindowReader(time.monotonic(), gpu)


def windows(group: Group, reader: WindowReader) -> tuple[MachineWindow, ...]:
    """Return the readings of every rank so far."""
    return tuple(group.gather(reader.read(time.monotonic())))


def _spin(turns: int) -> None:
    for _ in range(turns):
        pass
