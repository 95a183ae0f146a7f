"""Read disturbances of this machine between two times: steal, pressure, CPU quota, clocks.

An absent counter is None, never 0.
"""

import ctypes
import os
import statistics
from collections import Counter
from pathlib import Path

from smoke_training import files
from smoke_training.evidence.training import MachineWindow
from smoke_training.runtime import host
from smoke_training.runtime.nvml import GpuClock, Nvml


class QuotaClock:
    """Count and seconds of throttling by the CPU quota of this process's control group.

    `nr_throttled` with `throttled_usec` (control groups v2) or `throttled_time` in nanoseconds (v1) of
    `cpu.stat` (kernel `Documentation/scheduler/sched-bwc.rst`).
    """

    def __init__(self) -> None:
        found = _cpu_stat()
        self._file = None if found is None else os.open(found, os.O_RDONLY)

    def read(self) -> tuple[int, float] | None:
        """Return (periods, seconds); None where no group has such counters, as at the root of the tree."""
        if self._file is None:
            return None
        entries = dict(line.split(maxsplit=1) for line in os.pread(self._file, 4096, 0).decode().splitlines())
        if "throttled_usec" in entries:
            return int(entries["nr_throttled"]), int(entries["throttled_usec"]) / 1e6
        return int(entries["nr_throttled"]), int(entries["throttled_time"]) / 1e9

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _cpu_stat() -> Path | None:
    """Return the nearest group's `cpu.stat` with throttling counters."""
    for folder in host.cgroup_folders("cpu"):
        entries = {entry.split()[0] for entry in files.lines(folder / "cpu.stat") if entry.split()}
        if "nr_throttled" in entries and entries & {"throttled_usec", "throttled_time"}:
            return folder / "cpu.stat"
    return None


def cpu_pressure_seconds() -> float | None:
    """Return the seconds since boot in which some task waited for a CPU (`/proc/pressure/cpu`, PSI)."""
    for line in files.lines(Path("/proc/pressure/cpu")):
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def cpu_mhz() -> float | None:
    """Return the clock of this thread's CPU; None without cpufreq, as in most guests."""
    try:
        cpu = ctypes.CDLL(None).sched_getcpu()
    except (OSError, AttributeError):
        return None
    lines = files.lines(Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
    return int(lines[0]) / 1e3 if lines else None


class WindowReader:
    """Reads the counters at its creation and at `read`.

    The quota is counted between `resume` and `pause` only, so that it can be compared with the rank's own
    times. `seconds` are of any continuous clock: the caller's; `gpu` is a GPU's UUID.
    """

    def __init__(self, seconds: float, gpu: str | None = None) -> None:
        self._began, self._gpu = seconds, _driver(gpu)
        self._ticks, self._pressure = host.cpu_ticks(), cpu_pressure_seconds()
        self._quota = QuotaClock()
        self._from: tuple[int, float] | None = None
        self._periods, self._throttled = 0, 0.0
        self._counted = False
        self._mhz: list[float] = []
        self._looks: list[GpuClock] = []

    def resume(self) -> None:
        """Count the quota from here."""
        self._from = self._quota.read()

    def pause(self) -> None:
        """Count the quota until here."""
        now = self._quota.read()
        if self._from is not None and now is not None:
            self._counted = True
            self._periods += now[0] - self._from[0]
            self._throttled += now[1] - self._from[1]
        self._from = None

    def sample_clock(self) -> None:
        """Sample the clocks of CPU and GPU; call it right after work: an idle GPU raises its clock.

        One H100 had 1,620 MHz, limited by its power cap, right after full load, and 1,980 in pauses.
        """
        mhz = cpu_mhz()
        if mhz is not None:
            self._mhz.append(mhz)
        if self._gpu is not None:
            self._looks.append(self._gpu.clock())

    def read(self, seconds: float) -> MachineWindow:
        """Return the disturbances since this reader was created."""
        gpu = [look.mhz for look in self._looks if look.mhz is not None]
        reasons = Counter(reason for look in self._looks for reason in look.reasons)
        return MachineWindow(
            steal_share=host.share("steal", self._ticks, host.cpu_ticks()),
            cpu_pressure=_pressure_share(self._pressure, cpu_pressure_seconds(), seconds - self._began),
            throttled_periods=self._periods if self._counted else None,
            throttled_seconds=self._throttled if self._counted else None,
            cpu_mhz=sum(self._mhz) / len(self._mhz) if self._mhz else None,
            gpu_mhz=statistics.median(gpu) if gpu else None,
            clock_reasons=tuple(reason for reason, count in reasons.items() if 2 * count > len(self._looks)),
        )


def _driver(uuid: str | None) -> Nvml | None:
    """Return the driver's library for one GPU; None without a GPU or its library."""
    if uuid is None:
        return None
    try:
        return Nvml(uuid)
    except OSError:
        return None


def _pressure_share(before: float | None, after: float | None, seconds: float) -> float | None:
    if before is None or after is None or seconds <= 0:
        return None
    return min(1.0, max(0.0, (after - before) / seconds))
