"""How quiet the machines are: a fixed amount of work per rank with nothing to wait for.

No more ranks of a node spin at once than it has CPUs, so that whatever disturbs the spins comes from outside
this run: a neighbour, a hypervisor, a quota, a clock.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import torch

from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.runtime import host
from smoke_training.runtime.window import WindowReader

SPIN_SECONDS = 0.004  # longer than a scheduler's slice is, so that a neighbour shows in every spin
SPINS, SPINS_FULL = 50, 100
SPINS_BETWEEN = 15  # between the looks of a long measurement
_TURNS = 20_000


@dataclass
class Spins:
    """Wall seconds of every spin of this rank, and how long it waited for a CPU in each."""

    wall: list[float] = field(default_factory=list)
    queue: list[float | None] = field(default_factory=list)


class Spinner:
    """The same work on every rank: the number of turns is agreed on once."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self.clock = host.QueueClock()
        fastest = min(_timed(_TURNS) for _ in range(5))
        wanted = [int(str(item)) for item in gang.gather(round(_TURNS * SPIN_SECONDS / fastest))]
        self.turns = max(1, min(wanted))
        self.wave, self.waves = _wave(gang)

    def run(self, spins: Spins, count: int) -> None:
        """`count` spins of every rank, wave by wave; all ranks must call it."""
        for wave in range(self.waves):
            self.gang.barrier()
            if wave == self.wave:
                for _ in range(count):
                    self._spin(spins)
        self.gang.barrier()

    def _spin(self, spins: Spins) -> None:
        before = self.clock.waited()
        spins.wall.append(_timed(self.turns))
        after = self.clock.waited()
        spins.queue.append(None if before is None or after is None else after - before)


def measure(context: Context) -> Iterator[Line]:
    """The `fitness` evidence."""
    gang = context.gang
    spinner, spins = Spinner(gang), Spins()
    reader = window_reader(gang)
    reader.resume()
    spinner.run(spins, SPINS_FULL if context.full else SPINS)
    reader.pause()
    reader.sample_clock()
    yield {"kind": "fitness", **spin_lines(gang, spins), "windows": windows(gang, reader)}


def spin_lines(gang: Gang, spins: Spins) -> Line:
    """`spin` and `spin_queue` of all ranks."""
    return {"spin": gang.rows(spins.wall), "spin_queue": known_rows(gang, spins.queue)}


def known_rows(gang: Gang, values: list[float | None]) -> list[list[float]] | None:
    """The same series of all ranks, or None as soon as one rank's kernel does not report it."""
    rows = gang.rows([-1.0 if value is None else value for value in values])
    return None if any(value < 0 for row in rows for value in row) else rows


def window_reader(gang: Gang) -> WindowReader:
    """A reader of this rank's machine and GPU, started now."""
    return WindowReader(time.monotonic(), _uuid(gang) if gang.cuda else None)


def windows(gang: Gang, reader: WindowReader) -> list[object]:
    """What every rank's reader has seen so far, by rank."""
    return gang.gather(asdict(reader.read(time.monotonic())))


def _timed(turns: int) -> float:
    start = time.perf_counter()
    for _ in range(turns):
        pass
    return time.perf_counter() - start


def _wave(gang: Gang) -> tuple[int, int]:
    """The wave of this rank, and how many waves the most crowded node needs."""
    found = [
        tuple(int(str(part)) for part in item)
        for item in gang.gather((gang.node, gang.local_rank, host.usable_cpus()))
        if isinstance(item, tuple)
    ]
    crowds = [-(-sum(other[0] == node for other in found) // cpus) for node, _, cpus in found]
    waves = max(crowds)
    return gang.local_rank % waves, waves


def _uuid(gang: Gang) -> str:
    return f"GPU-{torch.cuda.get_device_properties(gang.device).uuid}"
