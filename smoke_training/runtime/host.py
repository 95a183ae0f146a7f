"""Counters and addresses of this machine. An absent counter is None, never 0."""

import os
import socket
from pathlib import Path


class QueueClock:
    """Seconds the thread that made it has waited, runnable, for a CPU that something else held.

    `/proc/thread-self/schedstat` (kernel `Documentation/scheduler/sched-stats.rst`): second field,
    nanoseconds. A stopped process does not wait, so a SIGSTOP never hides in this figure.
    """

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
            os.pread(self._file, 64, 0)
        except OSError:
            self._file = None

    def waited(self) -> float | None:
        """Total waiting so far in seconds; None where the kernel does not account for it."""
        return None if self._file is None else int(os.pread(self._file, 64, 0).split()[1]) / 1e9


def throttled_periods() -> int | None:
    """How often this process's cgroup was throttled by its CPU quota so far (v2 `cpu.stat`, or v1)."""
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            folders = [Path("/sys/fs/cgroup" + group), Path("/sys/fs/cgroup")]
        elif "cpu" in controllers.split(","):
            folders = [Path("/sys/fs/cgroup/cpu" + group), Path("/sys/fs/cgroup/cpu")]
        else:
            continue
        for folder in folders:
            for entry in _lines(folder / "cpu.stat"):
                if entry.startswith("nr_throttled "):
                    return int(entry.split()[1])
    return None


def cpu_ticks() -> tuple[int, int] | None:
    """(steal ticks, all ticks) of the machine since boot, from `/proc/stat`."""
    for line in _lines(Path("/proc/stat")):
        if line.startswith("cpu "):
            ticks = [int(part) for part in line.split()[1:9]]
            return (ticks[7], sum(ticks)) if len(ticks) == 8 else None
    return None


def name() -> str:
    """Name of this node: the pod's where the container runtime says it, else the machine's."""
    return os.environ.get("HOSTNAME") or socket.gethostname()


def usable_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def resolve(host: str) -> str | None:
    """IPv4 address of a name, or None while it has none (a pod's DNS name appears after the pod does)."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        return None


def is_loopback(address: str) -> bool:
    """Whether an IPv4 address lies in 127.0.0.0/8."""
    return address.startswith("127.")


def nvidia_devices() -> int:
    """NVIDIA devices this container can see, counted without importing torch."""
    return sum(1 for path in Path("/dev").glob("nvidia[0-9]*"))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
