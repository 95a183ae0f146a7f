"""How long all threads of this process waited for a CPU."""

import os
from pathlib import Path

_TASKS = Path("/proc/self/task")


def waited() -> float | None:
    """Seconds that this process's living threads have waited, runnable, for a CPU that something else held.

    Sum of the second field of `/proc/self/task/*/schedstat` (kernel `Documentation/scheduler/
    sched-stats.rst`, nanoseconds). None where the kernel does not account for it. gloo moves its bytes on
    threads of its own, so the calling thread's share alone would miss them.
    """
    total = 0
    try:
        for task in os.scandir(_TASKS):
            total += int(Path(task.path, "schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return total / 1e9
