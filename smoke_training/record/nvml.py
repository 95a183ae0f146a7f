"""NVIDIA's management library through ctypes, so that no package is needed. Untested on hardware.

Functions and structures follow `nvml.h`: nvmlMemory_t {total, free, used} in bytes, nvmlUtilization_t
{gpu, memory} in percent, power in milliwatts. Loading it makes no CUDA context.
"""

import ctypes

from smoke_training.record.system_metrics import GpuReading

SUCCESS = 0


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Nvml:
    """The accelerators of this node; OSError with the reason where there is no library or no device."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        status = self._library.nvmlInit_v2()
        if status != SUCCESS:
            raise OSError(f"nvmlInit_v2 answered {status}")
        self._handles = self._devices()
        if not self._handles:
            raise OSError("NVML lists no device")

    def read(self) -> list[GpuReading]:
        """One reading of every device."""
        return [self._read(handle) for handle in self._handles]

    def close(self) -> None:
        """Let go of the library."""
        self._library.nvmlShutdown()

    def _devices(self) -> list[ctypes.c_void_p]:
        count = ctypes.c_uint()
        if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
            return []
        handles = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            found = self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle))
            if found == SUCCESS:
                handles.append(handle)
        return handles

    def _read(self, handle: ctypes.c_void_p) -> GpuReading:
        memory, rates = _Memory(), _Utilization()
        sized = self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == SUCCESS
        busy = self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)) == SUCCESS
        return GpuReading(
            memory_used=memory.used if sized else None,
            memory_total=memory.total if sized else None,
            utilization=float(rates.gpu) if busy else None,
            power=self._watts("nvmlDeviceGetPowerUsage", handle),
            power_limit=self._watts("nvmlDeviceGetEnforcedPowerLimit", handle),
        )

    def _watts(self, function: str, handle: ctypes.c_void_p) -> float | None:
        milliwatts = ctypes.c_uint()
        status = getattr(self._library, function)(handle, ctypes.byref(milliwatts))
        return milliwatts.value / 1000 if status == SUCCESS else None
