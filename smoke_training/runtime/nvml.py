"""NVIDIA's management library through ctypes, so that no package is needed. Read on one H100.

Functions and structures follow `nvml.h`: nvmlMemory_t {total, free, used} in bytes, nvmlUtilization_t
{gpu, memory} in percent, power in milliwatts, clocks in MHz; reasons for a low clock are bits
(https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html, read 2026-11-21). Loading
it makes no CUDA context. Errors, rows and links are untested on hardware (names and numbers: `nvml.h` of
NVIDIA/go-nvml at 2f9e261, 2026-07-01).
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from smoke_training.evidence.gpus import GpuState

SUCCESS = 0
CLOCK_SM = 1  # nvmlClockType_t
CORRECTED, UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
VOLATILE = 0  # nvmlEccCounterType_t: since the driver was loaded
RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
# NVML_FI_DEV_NVLINK_*_ERROR_COUNT_TOTAL, not supported from NVLink 5 on
NVLINK_ERRORS = {"nvlink_crc_flit": 38, "nvlink_crc_data": 45, "nvlink_replay": 52, "nvlink_recovery": 59}
NVLINKS_AT_MOST = 18  # NVML_NVLINK_MAX_LINKS
VIOLATIONS = {"power_ns": 0, "heat_ns": 1}  # nvmlPerfPolicyType_t: nanoseconds with a limited clock
XID_EVENT = 8  # nvmlEventTypeXidCriticalError
ACTIONS = ("none", "reset", "reboot", "drain peers", "drain peers and reset", "recover IMEX domain")
# Rate of one lane by generation. From generation 6 on errors are corrected (FLIT mode), and no rate holds.
PCIE_GBIT_S = {3: 8, 4: 16, 5: 32}
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


class _Pci(ctypes.Structure):  # nvmlPciInfo_t
    _fields_ = (("legacy", ctypes.c_char * 16), ("numbers", ctypes.c_uint * 5), ("bus", ctypes.c_char * 32))


class _Event(ctypes.Structure):  # nvmlEventData_t
    _fields_ = (
        ("device", ctypes.c_void_p),
        ("type", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("instances", ctypes.c_uint * 2),
    )


class Nvml:
    """The accelerators of this node, or the one with a UUID (`GPU-...`).

    OSError with the reason where there is no library or no such device. `library` is the driver's, loaded.
    """

    def __init__(self, uuid: str | None = None, library: Any = None) -> None:
        self._library = library or ctypes.CDLL("libnvidia-ml.so.1")
        self._events = ctypes.c_void_p()
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

    def state(self, handle: ctypes.c_void_p | None = None) -> GpuState:
        """Return errors, replaced memory, requested recovery and links of a device, the first by default."""
        handle = handle or self._handles[0]
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
            nvlinks=self._nvlinks(handle),
        )

    def watch(self) -> bool:
        """Collect Xid errors of all devices from now on; False where the driver does not report them."""
        return self._asked("nvmlEventSetCreate", ctypes.byref(self._events)) and all(
            self._asked("nvmlDeviceRegisterEvents", handle, ctypes.c_ulonglong(XID_EVENT), self._events)
            for handle in self._handles
        )

    def xids(self) -> list[tuple[str, int]]:
        """Return PCI address and code of the Xid errors collected since the last call."""
        found, event = [], _Event()
        while self._events and self._asked("nvmlEventSetWait_v2", self._events, ctypes.byref(event), 0):
            found.append((self._bus(ctypes.c_void_p(event.device)), int(event.data)))
        return found

    def counters(self) -> dict[str, dict[str, int]]:
        """Return error counters by PCI address, without those that the driver does not report."""
        return {self._bus(handle): dict(self._counted(handle)) for handle in self._handles}

    def _counted(self, handle: ctypes.c_void_p) -> Iterator[tuple[str, int]]:
        count, state = ctypes.c_uint(), self.state(handle)
        if self._asked("nvmlDeviceGetPcieReplayCounter", handle, ctypes.byref(count)):
            yield "pcie_replay", count.value
        for name in ("corrected", "uncorrected", "remapped", "remap_failed"):
            value = getattr(state, name)
            if value is not None:
                yield name, int(value)
        if state.link is not None:
            yield "pcie_bits_s", PCIE_GBIT_S.get(state.link[0], 0) * state.link[1] * 10**9
        for name, number in NVLINK_ERRORS.items():
            if (errors := self._field(handle, number)) is not None:
                yield name, errors
        for name, number in VIOLATIONS.items():
            times = (ctypes.c_ulonglong * 2)()  # nvmlViolationTime_t: reference, violation
            if self._asked("nvmlDeviceGetViolationStatus", handle, number, ctypes.byref(times)):
                yield name, int(times[1])

    def _bus(self, handle: ctypes.c_void_p) -> str:
        """PCI address as the kernel writes it, "0000:3b:00.0"; "unknown" where the driver has none."""
        found = _Pci()
        known = self._asked("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(found))
        return str(found.bus.decode()[-12:].lower()) if known else "unknown"

    def _nvlinks(self, handle: ctypes.c_void_p) -> int | None:
        states = [ctypes.c_uint() for _ in range(NVLINKS_AT_MOST)]
        known = [
            state.value
            for link, state in enumerate(states)
            if self._asked("nvmlDeviceGetNvLinkState", handle, link, ctypes.byref(state))
        ]
        return sum(known) if known else None

    def _field(self, handle: ctypes.c_void_p, number: int) -> int | None:
        field = _Field(id=number)
        asked = self._asked("nvmlDeviceGetFieldValues", handle, 1, ctypes.byref(field))
        return int(field.value) if asked and field.status == SUCCESS else None

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
        number = self._field(handle, RECOVERY_ACTION)
        if number is None:
            return None
        number &= 0xFFFFFFFF  # an unsigned int of a union
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
