"""Start time and memory of a control plane, with and without Kueue and JobSet.

    python benchmarks/control_plane.py [STARTS]

The binaries have to be built: `make binaries`.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from components.kubernetes.queueing import kueue_values
from components.kubernetes.training.trainer import CHART, VALUES
from rehearsal.controlplane.control_plane import ControlPlaneOptions, running

STARTS = 5
SETTLE_S = 5.0


def measure(addons: Mapping[str, Mapping[str, Any]]) -> tuple[float, float, float]:
    """Seconds until ready, MB resident once at rest, seconds until the last process has ended."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with running(ControlPlaneOptions(Path(folder) / "run", addons=addons)) as plane:
            ready = time.monotonic() - began
            time.sleep(SETTLE_S)
            children = psutil.Process(plane.process.pid).children(recursive=True)
            memory = sum(child.memory_info().rss for child in children) / 1e6
            ending = time.monotonic()
        return ready, memory, time.monotonic() - ending


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    values = kueue_values.values(claimed={})
    queued = {"jobset": {}, CHART: VALUES, "kueue": values}
    for name, addons in (
        ("API server, controllers, scheduler, KWOK", {}),
        ("with Kueue, JobSet, Trainer", queued),
    ):
        rows = [measure(addons) for _ in range(starts)]
        ready, memory, ended = (statistics.median(column) for column in zip(*rows, strict=True))
        worst = max(row[0] for row in rows)
        print(f"{name}: ready {ready:.1f} s (worst {worst:.1f}), {memory:.0f} MB, ended in {ended:.1f} s")


if __name__ == "__main__":
    main()
