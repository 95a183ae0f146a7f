"""CPUs, devices and names of this machine. An absent counter is None, never 0."""

import contextlib
import os
import resource
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from smoke_training import files

CAP_IPC_LOCK = 14  # linux/capability.h


class QueueClock:
    """Seconds that its creating thread has waited, runnable, for a CPU.

    From the kernel's `schedstat`. A stopped process does not wait, so a SIGSTOP is not part of this figure.
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
    """Return the same of every thread of this process, by thread id; empty where unsupported."""
    found = {}
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - called around every transfer: no objects
        with contextlib.suppress(OSError, IndexError, ValueError):
            found[thread] = _waited(Path(f"/proc/self/task/{thread}/schedstat").read_bytes())
    return found


def longest_wait(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Return the seconds that the most starved thread waited between two readings; None if nothing was read.

    The sum over threads would count parallel waits several times.
    """
    return max((now - before.get(thread, now) for thread, now in after.items()), default=None)


def _waited(schedstat: bytes) -> float:
    """Return seconds: the second field, in nanoseconds (kernel `Documentation/scheduler/sched-stats.rst`)."""
    return int(schedstat.split()[1]) / 1e9


class Ticks(NamedTuple):
    """CPU time of the whole machine since boot: taken by its hypervisor, neither idle nor in iowait, all."""

    steal: int
    busy: int
    total: int


def cpu_ticks(stat: Path = Path("/proc/stat")) -> Ticks | None:
    """Return the ticks of all CPUs from `/proc/stat`."""
    for line in files.lines(stat):
        if line.startswith("cpu "):
            ticks = [int(part) for part in line.split()[1:9]]
            return Ticks(ticks[7], sum(ticks) - ticks[3] - ticks[4], sum(ticks)) if len(ticks) == 8 else None
    return None


def share(kind: Literal["steal", "busy"], before: Ticks | None, after: Ticks | None) -> float | None:
    """Return the share of CPU time between two readings; None when the clock did not advance."""
    if before is None or after is None or after.total <= before.total:
        return None
    passed: int = getattr(after, kind) - getattr(before, kind)
    return min(1.0, max(0.0, passed / (after.total - before.total)))


def lockable_bytes(status: Path = Path("/proc/self/status")) -> int | None:
    """Return the memory that this process may lock (`ulimit -l`); None without a limit.

    A process with CAP_IPC_LOCK has no limit (Linux `drivers/infiniband/core/umem.c`, ib_umem_get).
    """
    capable = next((line.split()[1] for line in files.lines(status) if line.startswith("CapEff:")), "0")
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY or int(capable, 16) >> CAP_IPC_LOCK & 1
    return None if unlimited else soft


def name() -> str:
    """Return the name of this node: NODE_NAME in a pod, else the machine's own."""
    return os.environ.get("NODE_NAME") or os.environ.get("HOSTNAME") or socket.gethostname()


def usable_cpus() -> int:
    """Return the number of CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def run_near(bus: str, devices: Path = Path("/sys/bus/pci/devices")) -> str:
    """Bind this process to the CPUs of a PCI device's NUMA node, as far as its control group allows them.

    Memory follows, because Linux allocates it where it is first touched. Returns the binding, or why there is
    none. Kernel files: `numa_node`, `local_cpulist` (Documentation/ABI/testing/sysfs-bus-pci).
    """
    node = next(iter(files.lines(devices / bus / "numa_node")), "-1")
    ranges = next(iter(files.lines(devices / bus / "local_cpulist")), "").split(",")
    ends = [part.partition("-") for part in ranges if part.strip()]
    near = {cpu for low, _, high in ends for cpu in range(int(low), int(high or low) + 1)}
    allowed = os.sched_getaffinity(0)
    if int(node) < 0 or not near & allowed:
        return f"not bound: NUMA node {node} of {bus} has no CPU that this process may use"
    try:
        os.sched_setaffinity(0, near & allowed)
    except OSError as error:
        return f"not bound: {error.strerror}"
    return f"NUMA node {node}: {len(near & allowed)} of {len(allowed)} CPUs"


def resolve(host: str) -> str | None:
    """Return an address of a name, IPv4 first; None without one (a pod's name appears after the pod)."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return str(min(found, key=lambda entry: entry[0] is not socket.AF_INET)[4][0])


def is_loopback(address: str) -> bool:
    """Report whether an address is in 127.0.0.0/8 or ::1."""
    return address.startswith("127.") or address == "::1"


def interface_to(address: str) -> str | None:
    """Return the interface from which this machine reaches an IPv6 address; None without a route."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as end:
            end.connect((address, 9))  # sends nothing
            own = socket.inet_pton(socket.AF_INET6, end.getsockname()[0].partition("%")[0]).hex()
    except OSError:
        return None
    entries = (line.split() for line in files.lines(Path("/proc/net/if_inet6")))
    return next((entry[5] for entry in entries if entry[0] == own), None)


def nvidia_driver() -> str | None:
    """Return the version of the NVIDIA kernel driver; None without one."""
    lines = files.lines(Path("/sys/module/nvidia/version"))
    if lines:
        return lines[0].strip()
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 ..."
    text = next(iter(files.lines(Path("/proc/driver/nvidia/version"))), "").split()
    return next((word for word in text if word[:1].isdigit() and "." in word), None)


def oom_kills() -> int | None:
    """Count OOM-killed processes of this cgroup (v2 `memory.events`, or v1)."""
    for folder in cgroup_folders("memory"):
        for name in ("memory.events", "memory.oom_control"):
            for entry in files.lines(folder / name):
                if entry.startswith("oom_kill "):
                    return int(entry.split()[1])
    return None


def cgroup_folders(controller: str) -> list[Path]:
    """Return candidate folders of a controller's files: this process's own group, then the root.

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
