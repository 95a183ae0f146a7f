"""How far the machines disturbed a measurement: the noise ladder (pure).

What is left of a fixed spin's spread, once waiting for CPUs held by others is taken out, is what no
correction can take out of the training step either: a hypervisor that takes the CPU away, a neighbour on the
same core, a clock that moves. A FAIL measured on such a machine is reported as INCONCLUSIVE with its number.
"""

import math
import statistics
from collections.abc import Sequence

from smoke_training.evidence.training import Window
from smoke_training.statistics.estimators import median_absolute_deviation

SPIN_SPREAD_LIMIT = 0.15  # MAD over median of the null measurement
STEAL_LIMIT = 0.05  # as large as a slowdown that is called negligible: below it, it explains no FAIL

Rows = Sequence[Sequence[float]]


def without_queue(
    walls: Sequence[float], queues: Sequence[float], *, share: float = 1.0, parts: int = 100
) -> list[float]:
    """Wall seconds less `share` of the waiting for a CPU, per iteration.

    Never below one of `parts` parts of the wall: the two clocks are read one after the other.
    """
    return [max(wall - share * queue, wall / parts) for wall, queue in zip(walls, queues, strict=True)]


def relative_spread(rows: Rows) -> float | None:
    """Largest MAD over median of any rank's series; None without values."""
    spreads = [median_absolute_deviation(row) / statistics.median(row) for row in rows if row]
    return max(spreads, default=None)


def spin_spread(spin: Rows, queue: Rows | None) -> float | None:
    """The null measurement: spread of the worst rank's spins, waiting taken out where it is known."""
    if queue is None:
        return relative_spread(spin)
    return relative_spread([without_queue(*pair) for pair in zip(spin, queue, strict=True)])


def queue_share(walls: Rows, queues: Rows | None) -> float | None:
    """Largest share of any rank's wall time spent waiting, runnable, for a CPU held by something else."""
    if queues is None:
        return None
    pairs = [(math.fsum(wall), math.fsum(queue)) for wall, queue in zip(walls, queues, strict=True)]
    return max((queue / wall for wall, queue in pairs if wall > 0), default=None)


def worst(values: Sequence[float | None]) -> float | None:
    """Largest of the known values; None if none is known."""
    return max((value for value in values if value is not None), default=None)


def unfit(spread: float | None, windows: Sequence[Window]) -> str | None:
    """Why nothing timed here may FAIL, with the number; None on a fit machine."""
    if spread is not None and spread > SPIN_SPREAD_LIMIT:
        return f"a fixed spin varies by {spread:.0%} (MAD over median, at most {SPIN_SPREAD_LIMIT:.0%})"
    steal = worst([window.steal_share for window in windows])
    if steal is not None and steal > STEAL_LIMIT:
        return f"the hypervisor takes {steal:.0%} of the CPU time away (at most {STEAL_LIMIT:.0%})"
    return None
