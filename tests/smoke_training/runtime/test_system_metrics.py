import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smoke_training import evidence
from smoke_training.evidence.gpus import GpuState
from smoke_training.evidence.world import System
from smoke_training.runtime import nvml, system_metrics
from smoke_training.runtime.nvml import GpuClock, GpuReading, Nvml, reason_names

NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0
  eth0: 5000000 1 0 0 0 0 0 0 3000000 1 0 0 0 0 0 0
"""


def test_memory_in_use_is_all_that_is_not_available() -> None:
    found = system_metrics.memory(["MemTotal: 1000000 kB", "MemFree: 1 kB", "MemAvailable: 750000 kB"])
    assert found["system_memory_usage_percentage"] == 25.0
    assert found["system_memory_usage_megabytes"] == 256.0
    assert system_metrics.memory(["MemTotal: 5 kB"]) == {}


def test_traffic_is_of_all_interfaces_since_the_beginning() -> None:
    now = system_metrics.network_bytes(NET.splitlines())
    assert now == (5_001_000, 3_001_000)
    assert system_metrics.network((1000, 1000), now) == {
        "network_receive_megabytes": 5.0, "network_transmit_megabytes": 3.0,
    }  # fmt: skip
    assert system_metrics.network((9_000_000, 0), now) == {}  # a counter was reset


def test_what_a_driver_does_not_say_is_unknown() -> None:
    found = system_metrics.gpus([GpuReading(4_000_000, 8_000_000, 75.0, 350.0, None)])
    assert found == {
        "gpu_0_memory_usage_megabytes": 4.0, "gpu_0_memory_usage_percentage": 50.0,
        "gpu_0_utilization_percentage": 75.0, "gpu_0_power_usage_watts": 350.0,
        "gpu_0_power_usage_percentage": None,
    }  # fmt: skip
    assert set(system_metrics.gpus([GpuReading(None, None, None, None, None)]).values()) == {None}


@given(st.integers(0, 1000), st.integers(2, 120))
def test_thinning_keeps_both_ends_and_the_order(count: int, most: int) -> None:
    kept = system_metrics.thinned(count, most)
    assert len(kept) == min(count, most)
    assert kept == sorted(set(kept))
    assert not count or (kept[0], kept[-1]) == (0, count - 1)


def test_a_node_is_sampled_and_its_line_is_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    enough, disk = threading.Semaphore(0), system_metrics.disk

    def counted() -> dict[str, float]:
        enough.release()
        return disk()

    monkeypatch.setattr(system_metrics, "disk", counted)
    watch = system_metrics.SystemSampler(3, every_s=0.01)
    watch.start()
    assert all(enough.acquire(timeout=30) for _ in range(3))
    found = evidence.parse([evidence.line_of(watch.stop())]).of(System)
    assert found is not None
    assert found.node == 3
    assert len(found.at_ms) == len(found.values) >= 3
    memory = found.names.index("system_memory_usage_percentage")
    assert all(0 < (row[memory] or 0) < 100 for row in found.values)
    assert {"cpu_utilization_percentage", "network_receive_megabytes", "disk_usage_percentage"} <= set(
        found.names
    )
    assert found.gpu_reason is None or "no NVML" in found.gpu_reason


def test_a_sampler_that_never_started_still_gives_its_line() -> None:
    assert system_metrics.SystemSampler(0).stop().values == ()


def _at(reference: Any) -> Any:
    """The variable behind a reference that `ctypes.byref` made; ctypes has no public way to it."""
    return reference._obj


class FakeDriver:
    """Answers as `nvml.h` says: status 0, results through the pointers. The second device has no power."""

    def __init__(self, devices: int, recent: bool = True) -> None:
        self.devices, self.closed, self.recent = devices, False, recent

    def nvmlInit_v2(self) -> int:  # noqa: N802 - the library's name
        return 0

    def nvmlShutdown(self) -> int:  # noqa: N802
        self.closed = True
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        _at(count).value = self.devices
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:  # noqa: N802
        _at(handle).value = 100 + index.value
        return 0

    def nvmlDeviceGetMemoryInfo(self, _handle: Any, memory: Any) -> int:  # noqa: N802
        _at(memory).total, _at(memory).free, _at(memory).used = 80_000_000, 60_000_000, 20_000_000
        return 0

    def nvmlDeviceGetUtilizationRates(self, _handle: Any, rates: Any) -> int:  # noqa: N802
        _at(rates).gpu, _at(rates).memory = 97, 40
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, milliwatts: Any) -> int:  # noqa: N802
        _at(milliwatts).value = 350_500
        return 0 if handle.value == 100 else 3  # NVML_ERROR_NOT_SUPPORTED

    def nvmlDeviceGetEnforcedPowerLimit(self, _handle: Any, milliwatts: Any) -> int:  # noqa: N802
        _at(milliwatts).value = 701_000
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, handle: Any) -> int:  # noqa: N802
        _at(handle).value = 100
        return 0 if uuid == b"GPU-1" else 6  # NVML_ERROR_NOT_FOUND

    def nvmlDeviceGetClockInfo(self, _handle: Any, kind: Any, mhz: Any) -> int:  # noqa: N802
        _at(mhz).value = 1410
        return 0 if kind == 1 else 2  # NVML_ERROR_INVALID_ARGUMENT

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _handle: Any, bits: Any) -> int:  # noqa: N802
        _at(bits).value = 0x1 | 0x4 | 0x40
        return 0

    def nvmlDeviceGetTotalEccErrors(self, _handle: Any, sort: Any, counter: Any, count: Any) -> int:  # noqa: N802
        _at(count).value = {(0, 0): 12, (1, 0): 1}[sort, counter]
        return 0

    def nvmlDeviceGetRemappedRows(self, _handle: Any, *rows: Any) -> int:  # noqa: N802
        for row, value in zip(rows, (3, 1, 1, 0), strict=True):
            _at(row).value = value
        return 0

    def nvmlDeviceGetFieldValues(self, _handle: Any, count: Any, field: Any) -> int:  # noqa: N802
        assert (count, _at(field).id) == (1, 230)
        _at(field).status, _at(field).value = (0, 1) if self.recent else (2, 99)  # of this field alone
        return 0

    def nvmlDeviceGetCurrPcieLinkGeneration(self, _handle: Any, value: Any) -> int:  # noqa: N802
        _at(value).value = 4
        return 0

    def nvmlDeviceGetCurrPcieLinkWidth(self, _handle: Any, value: Any) -> int:  # noqa: N802
        _at(value).value = 8
        return 0


def test_accelerators_are_read_through_the_drivers_own_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(devices=2)
    monkeypatch.setattr("ctypes.CDLL", lambda name: driver)
    found = Nvml()
    assert found.read() == [
        GpuReading(20_000_000, 80_000_000, 97.0, 350.5, 701.0),
        GpuReading(20_000_000, 80_000_000, 97.0, None, 701.0),
    ]
    found.close()
    assert driver.closed
    watch = system_metrics.SystemSampler(0, every_s=0.01)
    watch.start()
    assert {"gpu_1_utilization_percentage", "gpu_0_power_usage_watts"} <= set(watch.stop().names)


def test_a_driver_without_devices_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: FakeDriver(devices=0))
    with pytest.raises(OSError, match="no device"):
        Nvml()


def test_one_device_has_a_clock_and_reasons_by_an_older_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: FakeDriver(devices=2))
    assert Nvml("GPU-1").clock() == GpuClock(1410.0, ("sw_power_cap", "hw_thermal_slowdown"))
    with pytest.raises(OSError, match="device GPU-2"):
        Nvml("GPU-2")


@pytest.mark.parametrize(("recent", "action"), [(True, "reset"), (False, None)])
def test_errors_and_links_are_read_and_what_a_driver_does_not_know_is_unknown(
    monkeypatch: pytest.MonkeyPatch, recent: bool, action: str | None
) -> None:
    driver = FakeDriver(devices=1, recent=recent)
    monkeypatch.setattr("ctypes.CDLL", lambda name: driver)
    assert nvml.state_of("GPU-1") == GpuState(
        corrected=12,
        uncorrected=1,
        remapped=1,
        remap_pending=True,
        remap_failed=False,
        action=action,
        link=(4, 8),
        link_most=None,  # this driver has no such function
    )
    assert driver.closed
    assert nvml.state_of("GPU-2") is None


def test_bits_of_the_driver_have_names() -> None:
    assert reason_names(0x1) == ()  # idle is no fault
    assert reason_names(0x4 | 0x40) == ("sw_power_cap", "hw_thermal_slowdown")
