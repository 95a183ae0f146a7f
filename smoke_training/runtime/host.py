"""CPUs, devices and names of this machine. An absent counter is None, never 0."""

import contextlib
import os
import resource
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from smoke_training.runtime import files

CAP_IPC_LOCK = 14  # linux/capability.h


class QueueClock:
    """Seconds the thread that made it has waited, runnable, for a CPU that something else held.

    From the kernel's `schedstat`. A stopped process does not wait, so a SIGSTOP never hides in this figure.
    """

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
            os.pread(self._file, 64, 0)
        except OSError:
            self._file = None

    def waited(self) -> float | None:
        """Total waiting so far in seconds; None where the kernel does not account for it."""
        return None if self._file is None else _waited(os.pread(self._file, 64, 0))


def waits_for_cpus() -> dict[str, float]:
    """The same of every thread of this process, by thread id; empty where the kernel does not say."""
    found = {}
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - called around every transfer: no objects
        with contextlib.suppress(OSError, IndexError, ValueError):
            found[thread] = _waited(Path(f"/proc/self/task/{thread}/schedstat").read_bytes())
    return found


def longest_wait(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Seconds that the most starved thread waited between two readings; None if nothing was read.

    The sum over threads would count threads that wait side by side.
    """
    return max((now - before.get(thread, now) for thread, now in after.items()), default=None)


def _waited(schedstat: bytes) -> float:
    """Seconds: the second field, in nanoseconds (kernel `Documentation/scheduler/sched-stats.rst`)."""
    return int(schedstat.split()[1]) / 1e9


class Ticks(NamedTuple):
    """CPU time of the whole machine since boot: taken by its hypervisor, neither idle nor in iowait, all."""

    steal: int
    busy: int
    total: int


def cpu_ticks(stat: Path = Path("/proc/stat")) -> Ticks | None:
    """The ticks of all CPUs from `/proc/stat`."""
    for line in files.lines(stat):
        if line.startswith("cpu "):
            ticks = [int(part) for part in line.split()[1:9]]
            return Ticks(ticks[7], sum(ticks) - ticks[3] - ticks[4], sum(ticks)) if len(ticks) == 8 else None
    return None


def share(kind: Literal["steal", "busy"], before: Ticks | None, after: Ticks | None) -> float | None:
    """Share of CPU time between two readings; None when the clock did not move on."""
    if before is None or after is None or after.total <= before.total:
        return None
    passed: int = getattr(after, kind) - getattr(before, kind)
    return min(1.0, max(0.0, passed / (after.total - before.total)))


def lockable_bytes(status: Path = Path("/proc/self/status")) -> int | None:
    """Most memory that this process may lock (`ulimit -l`); None where nothing limits it.

    Who may ignore the limit (CAP_IPC_LOCK) has none (Linux `drivers/infiniband/core/umem.c`, ib_umem_get).
    """
    capable = next((line.split()[1] for line in files.lines(status) if line.startswith("CapEff:")), "0")
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY or int(capable, 16) >> CAP_IPC_LOCK & 1
    return None if unlimited else soft


def name() -> str:
    """Name of this node: the cluster's where a pod is told it (NODE_NAME), else the machine's own."""
    return os.environ.get("NODE_NAME") or os.environ.get("HOSTNAME") or socket.gethostname()


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


def nvidia_driver() -> str | None:
    """Version of the NVIDIA kernel driver; None without one."""
    lines = files.lines(Path("/sys/module/nvidia/version"))
    if lines:
        return lines[0].strip()
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 ..."
    words = next(iter(files.lines(Path("/proc/driver/nvidia/version"))), "").split()
    return next((word for word in words if word[:1].isdigit() and "." in word), None)


def rdma_devices() -> list[str]:
    """Names of the RDMA devices (InfiniBand, RoCE, EFA) this container can see."""
    return sorted(path.name for path in Path("/sys/class/infiniband").glob("*"))


def oom_kills() -> int | None:
    """Processes of this cgroup that the kernel has ended for want of memory (v2 `memory.events`, or v1)."""
    for folder in cgroup_folders("memory"):
        for name in ("memory.events", "memory.oom_control"):
            for entry in files.lines(folder / name):
                if entry.startswith("oom_kill "):
                    return int(entry.split()[1])
    return None


def cgroup_folders(controller: str) -> list[Path]:
    """Where the files of a controller may lie for this process: its own group's folder, then the root's.

    A container sees its own group as the root.
    """
    found = []
    for line in files.lines(Path("/proc/self/cgroup")):
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root = Path("/sys/fs/cgroup")
        elif controller in controllers.split(","):
            root = Path("/sys/fs/cgroup") / controller
        else:
            continue
        found += [Path(f"{root}{group}"), root]
    return found
