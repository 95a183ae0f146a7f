"""Samples how busy this node is, from one daemon thread of its launcher."""

import os
import threading
import time
from pathlib import Path

from smoke_training.evidence.system import System
from smoke_training.record import system_metrics as counted
from smoke_training.runtime import host
from smoke_training.runtime.nvml import Nvml

EVERY_S = 2.0
MOST = 120  # samples kept per node: its line has to fit one message between launchers


class SystemSampler:
    """CPU, memory, disk, network and accelerators of one node.

    `start` returns at once; `stop` returns the evidence line, whatever was sampled until then. Nothing here
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
        self._traffic = counted.network_bytes(_text("/proc/net/dev"))

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> System:
        """End and return the `system` evidence; at least one sample is in it."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        # Copies: a thread that hangs in a driver call may still append.
        times, samples = list(self._times), list(self._samples)
        kept = counted.thinned(samples[: len(times)], MOST)
        names = sorted({name for sample in samples for name in sample})
        return System(
            node=self._node,
            names=tuple(names),
            at_ms=tuple(times[i] for i in kept),
            values=tuple(tuple(_rounded(samples[i].get(name)) for name in names) for i in kept),
            gpu_reason=self._gpu_reason,
        )

    def _run(self) -> None:
        gpus = self._gpus()
        while True:
            ended = self._ended.wait(self._every)
            try:
                sample = self._sample(gpus)
            except (OSError, ValueError):
                sample = {}
            if sample:
                self._samples.append(sample)
                self._times.append(int(time.time() * 1000))
            if ended:
                break
        if gpus is not None:
            gpus.close()

    def _gpus(self) -> Nvml | None:
        try:
            found = Nvml()
        except (OSError, AttributeError) as error:
            self._gpu_reason = f"no NVML on this node: {error}"
            return None
        self._gpu_reason = None
        return found

    def _sample(self, gpus: Nvml | None) -> dict[str, float | None]:
        ticks = host.cpu_ticks()
        busy, self._ticks = host.share("busy", self._ticks, ticks), ticks
        root = os.statvfs("/")
        block = root.f_frsize
        found: dict[str, float | None] = {
            "cpu_utilization_percentage": None if busy is None else 100 * busy,
            **counted.memory(_text("/proc/meminfo")),
            **counted.network(self._traffic, counted.network_bytes(_text("/proc/net/dev"))),
            **counted.disk(root.f_blocks * block, root.f_bfree * block, root.f_bavail * block),
        }
        return found | (counted.gpus(gpus.read()) if gpus is not None else {})


def _rounded(value: float | None) -> float | None:
    """One decimal, as MLflow's own monitor keeps them."""
    return None if value is None else round(value, 1)


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
