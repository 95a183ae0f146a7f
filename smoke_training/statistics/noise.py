"""Disturbance of a measurement by the machines: the noise ladder (pure).

The spread of a fixed spin without waiting for CPUs (hypervisor, neighbour on the core, clock) cannot be
corrected in the training step either. A FAIL measured on such a machine is INCONCLUSIVE with its number.
"""

import math
import statistics
from collections.abc import Sequence

from smoke_training.evidence.training import MachineWindow
from smoke_training.statistics.estimators import Rows, median_absolute_deviation

SPIN_SPREAD_LIMIT = 0.15  # MAD over median of the null measurement
STEAL_LIMIT = 0.05  # equal to the negligible slowdown: below it, it explains no FAIL
QUEUE_LIMIT = 0.10  # of the timed seconds spent waiting for CPUs; quiet hosts stay below 0.01


def without_queue(
    rows: Rows, queue: Rows | None, *, shares: Sequence[float] | None = None, parts: int = 100
) -> list[list[float]]:
    """Return wall seconds less the waiting for a CPU (of each row this share), where it is known.

    Never below one of `parts` parts of a value: the two clocks are read one after the other.
    """
    if queue is None:
        return [list(row) for row in rows]
    return [
        [max(wall - share * wait, wall / parts) for wall, wait in zip(walls, waits, strict=True)]
        for walls, waits, share in zip(rows, queue, shares or [1.0] * len(rows), strict=True)
    ]


def relative_spread(rows: Rows) -> float | None:
    """Return the largest MAD over median of any rank's series; None without values."""
    spreads = [median_absolute_deviation(row) / statistics.median(row) for row in rows if row]
    return max(spreads, default=None)


def queue_share(walls: Rows, queues: Rows | None) -> float | None:
    """Return the largest share of any rank's wall time spent runnable, waiting for a CPU."""
    if queues is None:
        return None
    pairs = [(math.fsum(wall), math.fsum(queue)) for wall, queue in zip(walls, queues, strict=True)]
    return max((queue / wall for wall, queue in pairs if wall > 0), default=None)


def worst(values: Sequence[float | None]) -> float | None:
    """Return the largest of the known values; None if none is known."""
    return max((float(value) for value in values if value is not None), default=None)


def figures(windows: Sequence[MachineWindow]) -> dict[str, float | None]:
    """Return the machines' noise figures of a measurement, for reports: the worst of each."""
    return {
        "steal": worst([window.steal_share for window in windows]),
        "cpu_pressure": worst([window.cpu_pressure for window in windows]),
        "throttled": worst([window.throttled_periods for window in windows]),
    }


def unfit(spread: float | None, windows: Sequence[MachineWindow]) -> str | None:
    """Return why no time measured here may FAIL, with the number; None on a quiet machine."""
    if spread is not None and spread > SPIN_SPREAD_LIMIT:
        return f"a fixed spin varies by {spread:.0%} (MAD over median, at most {SPIN_SPREAD_LIMIT:.0%})"
    steal = worst([window.steal_share for window in windows])
    if steal is not None and steal > STEAL_LIMIT:
        return f"the hypervisor takes {steal:.0%} of the CPU time away (at most {STEAL_LIMIT:.0%})"
    return None
