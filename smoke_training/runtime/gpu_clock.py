"""Clock of a GPU and why it is held down, from the driver's own library. Untested on hardware.

NVML through ctypes: `nvmlDeviceGetClockInfo` and `nvmlDeviceGetCurrentClocksEventReasons`, the reasons as
bits (https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html, read 2026-11-21).
"""

import ctypes
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
CLOCK_SM = 1  # nvmlClockType_t
REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}


@dataclass(frozen=True)
class GpuClock:
    """Clock of the streaming multiprocessors in MHz, and the names of the reasons that hold it down."""

    mhz: float | None
    reasons: tuple[str, ...]


class Gpu:
    """One GPU by its UUID (`GPU-...`); everything is None where the driver or its library is missing."""

    def __init__(self, uuid: str) -> None:
        self._device = ctypes.c_void_p()
        try:
            self._library: ctypes.CDLL | None = ctypes.CDLL(LIBRARY)
        except OSError:
            self._library = None
            return
        found = self._library.nvmlInit_v2() == 0 and (
            self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device)) == 0
        )
        if not found:
            self._library = None

    def clock(self) -> GpuClock | None:
        """What the driver says now; None without a driver."""
        if self._library is None:
            return None
        mhz = ctypes.c_uint()
        known = self._library.nvmlDeviceGetClockInfo(self._device, CLOCK_SM, ctypes.byref(mhz)) == 0
        return GpuClock(float(mhz.value) if known else None, reason_names(self._reasons(self._library)))

    def _reasons(self, library: ctypes.CDLL) -> int:
        bits = ctypes.c_ulonglong()
        # The second name is the same call in drivers before R535.
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ):
            call = getattr(library, name, None)
            if call is not None and call(self._device, ctypes.byref(bits)) == 0:
                return int(bits.value)
        return 0


def reason_names(bits: int) -> tuple[str, ...]:
    """Names of the reasons that slow a clock down, in the order of their bits."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)
