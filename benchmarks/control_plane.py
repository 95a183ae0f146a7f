"""How long a control plane takes to be ready, with and without Kueue and JobSet, and the memory it then has.

    python benchmarks/control_plane.py [STARTS]

The binaries have to be built: `make binaries`.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from components.kubernetes.queueing import kueue_values
from rehearsal.controlplane.order import Order, running

STARTS = 5
SETTLE_S = 5.0


def measure(values: dict[str, Any] | None) -> tuple[float, float, float]:
    """Seconds until ready, MB resident once at rest, seconds until the last process has ended."""
    with tempfile.TemporaryDirectory() as folder:
        jobset: dict[str, Any] | None = None if values is None else {}
        began = time.monotonic()
        with running(Order(Path(folder) / "run", kueue=values, jobset=jobset)) as plane:
            ready = time.monotonic() - began
            time.sleep(SETTLE_S)
            children = psutil.Process(plane.process.pid).children(recursive=True)
            memory = sum(child.memory_info().rss for child in children) / 1e6
            ending = time.monotonic()
        return ready, memory, time.monotonic() - ending


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    queued = kueue_values.values(service_monitor=False, claimed={})
    for name, values in (("API server, controllers, scheduler, KWOK", None), ("with Kueue, JobSet", queued)):
        rows = [measure(values) for _ in range(starts)]
        ready, memory, ended = (statistics.median(column) for column in zip(*rows, strict=True))
        worst = max(row[0] for row in rows)
        print(f"{name}: ready {ready:.1f} s (worst {worst:.1f}), {memory:.0f} MB, ended in {ended:.1f} s")


if __name__ == "__main__":
    main()
