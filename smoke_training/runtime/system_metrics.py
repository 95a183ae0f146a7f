"""Sample a node's utilization in its launcher, as MLflow's own system metrics.

Names and units are those of `mlflow.system_metrics.metrics` (MLflow 3.17): percentages, megabytes of 10^6
bytes, watts.
"""

import contextlib
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from smoke_training import files
from smoke_training.evidence.world import System
from smoke_training.runtime import host
from smoke_training.runtime.nvml import GpuReading, Nvml

MEMINFO, NET_DEV = Path("/proc/meminfo"), Path("/proc/net/dev")
EVERY_S = 2.0
MOST = 120  # samples kept per node: its line has to fit one message between launchers
MEGA = 1e6


class SystemSampler:
    """CPU, memory, disk, network and accelerators of one node.

    `start` returns at once; `stop` returns the evidence line, with the samples until then. Nothing here
    raises: a counter that cannot be read is missing from the line.
    """

    def __init__(self, node: int, every_s: float = EVERY_S) -> None:
        self._node, self._every = node, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="system-metrics", daemon=True)
        self._times: list[int] = []
        self._samples: list[dict[str, float | None]] = []
        self._gpu_reason: str | None = "not looked for"
        self._ticks = host.cpu_ticks()
        self._traffic = network_bytes(files.lines(NET_DEV))

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> System:
        """Stop and return the `system` evidence, with at least one sample."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        # Copies: a thread that hangs in a driver call may still append.
        times, samples = list(self._times), list(self._samples)
        kept = thinned(len(times), MOST)
        names = sorted({name for sample in samples for name in sample})
        return System(
            node=self._node,
            names=tuple(names),
            at_ms=tuple(times[i] for i in kept),
            values=tuple(tuple(samples[i].get(name) for name in names) for i in kept),
            gpu_reason=self._gpu_reason,
        )

    def _run(self) -> None:
        driver: Nvml | None = None
        try:
            driver, self._gpu_reason = Nvml(), None
        except (OSError, AttributeError) as error:
            self._gpu_reason = f"no NVML on this node: {error}"
        ended = False
        while not ended:
            ended = self._ended.wait(self._every)
            with contextlib.suppress(OSError, ValueError):
                self._samples.append(self._sample(driver.read() if driver is not None else []))
                self._times.append(int(time.time() * 1000))
        if driver is not None:
            driver.close()

    def _sample(self, readings: Sequence[GpuReading]) -> dict[str, float | None]:
        ticks = host.cpu_ticks()
        busy, self._ticks = host.share("busy", self._ticks, ticks), ticks
        found = {
            "cpu_utilization_percentage": None if busy is None else 100 * busy,
            **memory(files.lines(MEMINFO)),
            **network(self._traffic, network_bytes(files.lines(NET_DEV))),
            **disk(),
            **gpus(readings),
        }
        # One decimal, as MLflow's own monitor keeps them.
        return {name: None if value is None else round(value, 1) for name, value in found.items()}


def memory(meminfo: Sequence[str]) -> dict[str, float]:
    """Return memory in use (total less available) from lines of `/proc/meminfo`; empty without them."""
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in meminfo)}
    try:
        total, available = (int(fields[key][0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (KeyError, IndexError, ValueError):
        return {}
    return {
        "system_memory_usage_megabytes": (total - available) / MEGA,
        "system_memory_usage_percentage": 100.0 * (total - available) / total,
    }


def network_bytes(net_dev: Sequence[str]) -> tuple[int, int] | None:
    """Return (received, sent) bytes of all interfaces, with loopback, from the lines of `/proc/net/dev`."""
    rows = [counters for line in net_dev if len(counters := line.partition(":")[2].split()) >= 16]
    return (sum(int(row[0]) for row in rows), sum(int(row[8]) for row in rows)) if rows else None


def network(first: tuple[int, int] | None, now: tuple[int, int] | None) -> dict[str, float]:
    """Return traffic since the first reading; empty when a counter is missing or was reset."""
    if first is None or now is None or now[0] < first[0] or now[1] < first[1]:
        return {}
    return {
        "network_receive_megabytes": (now[0] - first[0]) / MEGA,
        "network_transmit_megabytes": (now[1] - first[1]) / MEGA,
    }


def disk() -> dict[str, float]:
    """Return the use of the root file system, as seen by unprivileged users."""
    _, used, free = shutil.disk_usage("/")
    return {
        "disk_usage_percentage": 100.0 * used / (used + free) if used + free else 0.0,
        "disk_usage_megabytes": used / MEGA,
        "disk_available_megabytes": free / MEGA,
    }


def gpus(readings: Sequence[GpuReading]) -> dict[str, float | None]:
    """Return the metrics of a node's accelerators, by index."""
    return {
        f"gpu_{index}_{name}": value
        for index, gpu in enumerate(readings)
        for name, value in (
            ("memory_usage_megabytes", None if gpu.memory_used is None else gpu.memory_used / MEGA),
            ("memory_usage_percentage", _percent(gpu.memory_used, gpu.memory_total)),
            ("utilization_percentage", gpu.utilization),
            ("power_usage_watts", gpu.power),
            ("power_usage_percentage", _percent(gpu.power, gpu.power_limit)),
        )
    }


def thinned(count: int, most: int) -> list[int]:
    """Return the indices of at most `most` of `count` samples, evenly spread, first and last kept."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})


def _percent(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100.0 * part / whole
