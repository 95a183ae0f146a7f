"""NVIDIA's management library through ctypes, so that no package is needed. Read on one H100.

Functions and structures follow `nvml.h`: nvmlMemory_t {total, free, used} in bytes, nvmlUtilization_t
{gpu, memory} in percent, power in milliwatts, clocks in MHz; reasons for a low clock are bits
(https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html, read 2026-11-21). Loading
it makes no CUDA context. Errors, rows and links are untested on hardware (names and numbers: `nvml.h` of
NVIDIA/go-nvml at 2f9e261, 2026-07-01).
"""

import ctypes
from dataclasses import dataclass

from smoke_training.evidence.gpus import GpuState

SUCCESS = 0
CLOCK_SM = 1  # nvmlClockType_t
CORRECTED, UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
VOLATILE = 0  # nvmlEccCounterType_t: since the driver was loaded
RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
ACTIONS = ("none", "reset", "reboot", "drain peers", "drain peers and reset", "recover IMEX domain")
REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
}


@dataclass(frozen=True)
class GpuReading:
    """One accelerator: bytes, percent, watts; None where the driver does not report it."""

    memory_used: int | None
    memory_total: int | None
    utilization: float | None
    power: float | None
    power_limit: float | None


@dataclass(frozen=True)
class GpuClock:
    """Clock of the streaming multiprocessors in MHz, and the names of the reasons that limit it."""

    mhz: float | None
    reasons: tuple[str, ...]


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Field(ctypes.Structure):  # nvmlFieldValue_t
    _fields_ = (
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("status", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


class Nvml:
    """The accelerators of this node, or the one with a UUID (`GPU-...`).

    OSError with the reason where there is no library or no such device.
    """

    def __init__(self, uuid: str | None = None) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        status = self._library.nvmlInit_v2()
        if status != SUCCESS:
            raise OSError(f"nvmlInit_v2 returned {status}")
        self._handles = self._devices() if uuid is None else self._device("UUID", uuid.encode())
        if not self._handles:
            raise OSError("NVML lists no device" if uuid is None else f"NVML lists no device {uuid}")

    def read(self) -> list[GpuReading]:
        """Return one reading of every device."""
        return [self._reading(handle) for handle in self._handles]

    def clock(self) -> GpuClock:
        """Return the current clock of the first device."""
        (handle, *_), mhz, bits = self._handles, ctypes.c_uint(), ctypes.c_ulonglong()
        known = self._asked("nvmlDeviceGetClockInfo", handle, CLOCK_SM, ctypes.byref(mhz))
        # The second name is the same call in drivers before R535.
        any(
            self._asked(f"nvmlDeviceGetCurrentClocks{name}Reasons", handle, ctypes.byref(bits))
            for name in ("Event", "Throttle")
        )
        return GpuClock(float(mhz.value) if known else None, reason_names(bits.value))

    def state(self) -> GpuState:
        """Return errors, replaced memory, requested recovery and the PCI Express link of the first device."""
        handle, *_ = self._handles
        rows = [ctypes.c_uint() for _ in range(4)]  # corrected, uncorrected, pending, failed
        known = self._asked("nvmlDeviceGetRemappedRows", handle, *map(ctypes.byref, rows))
        _, uncorrected, pending, failed = (row.value for row in rows)
        return GpuState(
            corrected=self._errors(handle, CORRECTED),
            uncorrected=self._errors(handle, UNCORRECTED),
            remapped=uncorrected if known else None,
            remap_pending=bool(pending) if known else None,
            remap_failed=bool(failed) if known else None,
            action=self._action(handle),
            link=self._link(handle, "Curr"),
            link_most=self._link(handle, "Max"),
        )

    def close(self) -> None:
        """Shut the library down."""
        self._library.nvmlShutdown()

    def _devices(self) -> list[ctypes.c_void_p]:
        count = ctypes.c_uint()
        self._asked("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [
            handle
            for index in range(count.value)
            for handle in self._device("Index_v2", ctypes.c_uint(index))
        ]

    def _device(self, by: str, key: object) -> list[ctypes.c_void_p]:
        handle = ctypes.c_void_p()
        return [handle] if self._asked(f"nvmlDeviceGetHandleBy{by}", key, ctypes.byref(handle)) else []

    def _reading(self, handle: ctypes.c_void_p) -> GpuReading:
        memory, rates = _Memory(), _Utilization()
        sized = self._asked("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        busy = self._asked("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates))
        return GpuReading(
            memory_used=memory.used if sized else None,
            memory_total=memory.total if sized else None,
            utilization=float(rates.gpu) if busy else None,
            power=self._watts("nvmlDeviceGetPowerUsage", handle),
            power_limit=self._watts("nvmlDeviceGetEnforcedPowerLimit", handle),
        )

    def _watts(self, function: str, handle: ctypes.c_void_p) -> float | None:
        milliwatts = ctypes.c_uint()
        return milliwatts.value / 1000 if self._asked(function, handle, ctypes.byref(milliwatts)) else None

    def _errors(self, handle: ctypes.c_void_p, sort: int) -> int | None:
        count = ctypes.c_ulonglong()
        requested = self._asked("nvmlDeviceGetTotalEccErrors", handle, sort, VOLATILE, ctypes.byref(count))
        return count.value if requested else None

    def _action(self, handle: ctypes.c_void_p) -> str | None:
        field = _Field(id=RECOVERY_ACTION)
        requested = self._asked("nvmlDeviceGetFieldValues", handle, 1, ctypes.byref(field))
        if not requested or field.status != SUCCESS:
            return None
        number = field.value & 0xFFFFFFFF  # an unsigned int of a union
        return ACTIONS[number] if number < len(ACTIONS) else f"action {number}"

    def _link(self, handle: ctypes.c_void_p, which: str) -> tuple[int, int] | None:
        found = [ctypes.c_uint(), ctypes.c_uint()]
        requested = [
            self._asked(f"nvmlDeviceGet{which}PcieLink{what}", handle, ctypes.byref(value))
            for what, value in zip(("Generation", "Width"), found, strict=True)
        ]
        return (found[0].value, found[1].value) if all(requested) else None

    def _asked(self, function: str, *arguments: object) -> bool:
        """Call a function of the driver; True on success, with the result in the arguments."""
        call = getattr(self._library, function, None)
        return call is not None and call(*arguments) == SUCCESS


def state_of(uuid: str) -> GpuState | None:
    """Return the state of one GPU; None without the driver's library or the device in it."""
    try:
        driver = Nvml(uuid)
    except OSError:
        return None
    try:
        return driver.state()
    finally:
        driver.close()


def reason_names(bits: int) -> tuple[str, ...]:
    """Return the names of the reasons for a low clock, in the order of their bits."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)
