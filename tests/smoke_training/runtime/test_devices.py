"""Error counters of devices against files as the kernel shows them, and against a driver."""

import ctypes
import struct
from pathlib import Path
from typing import Any

import pytest

from smoke_training.evidence import document_of
from smoke_training.judges.training import devices as judge
from smoke_training.model import Cause, Check, Verdict
from smoke_training.runtime.devices import DeviceReader
from smoke_training.runtime.nvml import Nvml
from tests.smoke_training.samples import lines, parsed, plan

PORT = "sys/class/infiniband/mlx5_0/ports/1"
GPU = b"00000000:3B:00.0"


class FakeDriver:
    """libnvidia-ml.so.1 with one GPU; `replays` and `xids` change while the test runs."""

    def __init__(self) -> None:
        self.replays, self.recoveries, self.xids, self.bus = 3, 0, list[int](), GPU

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # a function that this driver does not have

    def nvmlInit_v2(self) -> int:  # noqa: N802 - names of the library
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, _index: Any, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 7
        return 0

    def nvmlDeviceGetPciInfo_v3(self, _handle: Any, found: Any) -> int:  # noqa: N802
        found._obj.bus = self.bus
        return 0 if self.bus else 15

    def nvmlDeviceGetPcieReplayCounter(self, _handle: Any, count: Any) -> int:  # noqa: N802
        count._obj.value = self.replays
        return 0 if self.bus else 15

    def nvmlDeviceGetCurrPcieLinkGeneration(self, _handle: Any, value: Any) -> int:  # noqa: N802
        value._obj.value = 5
        return 0 if self.bus else 15

    def nvmlDeviceGetCurrPcieLinkWidth(self, _handle: Any, value: Any) -> int:  # noqa: N802
        value._obj.value = 16
        return 0 if self.bus else 15

    def nvmlDeviceGetFieldValues(self, _handle: Any, _count: int, field: Any) -> int:  # noqa: N802
        known = field._obj.id == 59  # NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL
        field._obj.status, field._obj.value = (0, self.recoveries) if known else (3, 0)
        return 0 if self.bus else 15

    def nvmlEventSetCreate(self, events: Any) -> int:  # noqa: N802
        events._obj.value = 1
        return 0

    def nvmlDeviceRegisterEvents(self, _handle: Any, _types: Any, _events: Any) -> int:  # noqa: N802
        return 0

    def nvmlEventSetWait_v2(self, _events: Any, event: Any, _wait: int) -> int:  # noqa: N802
        if not self.xids:
            return 10  # NVML_ERROR_TIMEOUT
        event._obj.device, event._obj.data = 7, self.xids.pop(0)
        return 0


def written(root: Path, path: str, content: str | bytes) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    for name, count in {"symbol_error": 5, "link_downed": 2, "port_xmit_data": 1000}.items():
        written(tmp_path, f"{PORT}/counters/{name}", str(count))
    written(tmp_path, f"{PORT}/hw_counters/local_ack_timeout_err", "9")
    written(tmp_path, "dev/kmsg", "6,100,5,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, before the run")
    return tmp_path


def judged(reader: DeviceReader, seconds: float = 100.0) -> Check:
    """The verdict on what a reader found, in a run of so many seconds, through the evidence file."""
    return judge.errors(plan(), parsed([lines()[0], {**document_of(reader.changes()), "seconds": seconds}]))


def no_driver() -> Nvml:
    raise OSError("libnvidia-ml.so.1: cannot open shared object file")


def test_what_was_there_before_the_run_is_no_fault(machine: Path) -> None:
    written(machine, f"{PORT}/counters/port_xmit_data", "2000")
    found = judged(DeviceReader(0, machine, no_driver))
    assert found.status is Verdict.PASS
    assert found.measured is not None
    assert (found.measured.value, found.measured.n) == (0.0, 4)


@pytest.mark.parametrize(
    ("path", "count", "status"),
    [
        ("counters/link_downed", 3, Verdict.FAIL),
        ("counters/symbol_error", 8, Verdict.PASS),  # three in 100 s: below 10 a second
        ("counters/symbol_error", 5005, Verdict.FAIL),
        ("hw_counters/local_ack_timeout_err", 70, Verdict.PASS),
        ("hw_counters/local_ack_timeout_err", 509, Verdict.FAIL),
    ],
)
def test_counters_are_judged_by_their_rate(machine: Path, path: str, count: int, status: Verdict) -> None:
    reader = DeviceReader(1, machine, no_driver)
    written(machine, f"{PORT}/counters/port_xmit_data", "999000")
    written(machine, f"{PORT}/{path}", str(count))
    found = judged(reader)
    assert found.status is status, found.message
    assert [item.id for item in found.culprits] == (["1"] if status is Verdict.FAIL else [])


@pytest.mark.parametrize(
    ("name", "most"), [("symbol_error", 65535), ("link_downed", 255), ("local_link_integrity_errors", 15)]
)
def test_a_counter_at_its_maximum_is_unknown(machine: Path, name: str, most: int) -> None:
    written(machine, f"{PORT}/counters/{name}", str(most))
    reader = DeviceReader(0, machine, no_driver)
    found = reader.changes()
    assert f"port/mlx5_0/1/{name}" in found.unreadable
    assert found.counted == 4 - (name != "local_link_integrity_errors")
    written(machine, f"{PORT}/counters/{name}", "0")  # after perfquery -R it is known again
    assert f"port/mlx5_0/1/{name}" not in reader.changes().unreadable


def test_a_port_that_carried_nothing_is_reported_and_no_fault(machine: Path) -> None:
    reader = DeviceReader(0, machine, no_driver)
    written(machine, f"{PORT}/counters/link_downed", "9")
    found = judged(reader)
    assert found.status is Verdict.PASS
    assert "link_downed +7" in found.message


NVLINK = "NVRM: Xid (PCI:0000:87:00):"
XID_154 = "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from"


@pytest.mark.parametrize(
    ("message", "status", "words"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.", Verdict.FAIL, "Xid 79"),
        ("NVRM: Xid (PCI:0000:3b:00): 13, pid=12, Graphics SM Warp Exception", Verdict.PASS, "Xid 13"),
        ("NVRM: Xid (PCI:0000:3b:00): 154, action changed to 0x1 (GPU Reset Required)", Verdict.FAIL, "asks"),
        (f"{XID_154} 0x0 (None) to 0x2 (OS Reboot)", Verdict.FAIL, "asks"),
        (f"{XID_154} 0x0 (None) to 0x1 (PF FLR)", Verdict.FAIL, "asks"),
        (f"{XID_154} 0x0 (None) to 0x4 (Drain and Reset)", Verdict.FAIL, "asks"),
        (f"{XID_154} 0x0 (None) to 0x3 (Drain P2P)", Verdict.FAIL, "asks"),
        (f"{XID_154} 0x1 (GPU Reset Required) to 0x0 (None)", Verdict.PASS, "Xid 154, 1 times"),
        (f"{XID_154} 0x2 (Node Reboot Required) to 0x1 (GPU Reset Required)", Verdict.FAIL, "asks"),
        (
            f"{NVLINK} 149, pid=123, name=python, NETIR_LINK_EVT  Fatal   XC0 i0 Link 07 (0x1)",
            Verdict.FAIL,
            "149 fatal",
        ),
        (f"{NVLINK} 145, RLW_REMAP  Fatal   XC1 i0 Link 17 (0x1)", Verdict.FAIL, "Xid 145 fatal"),
        (f"{NVLINK} 145, RLW_CTRL  Nonfatal XC0 i0 Link 17 (0x1)", Verdict.PASS, "Xid 145, 1"),
        (f"{NVLINK} 31, pid=123, name=Fatal, MMU Fault", Verdict.PASS, "Xid 31 fatal, 1"),
        ("NVRM: Xid (PCI:0000:3b:00): 4242, a code of the future", Verdict.PASS, "Xid 4242"),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Link 04 RX",
            Verdict.PASS,
            "non-fatal",
        ),
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 04",
            Verdict.FAIL,
            "SXid 12028 fatal",
        ),
    ],
)
def test_messages_of_the_driver(machine: Path, message: str, status: Verdict, words: str) -> None:
    reader = DeviceReader(0, machine, no_driver)
    with (machine / "dev/kmsg").open("a") as log:
        log.write(f"4,101,9,-;{message}\n")
    found = judged(reader)
    assert found.status is status, found.message
    assert words in found.message


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.", Cause.GPU_FAILED),
        ("NVRM: Xid (PCI:0000:3b:00): 119, pid=12, Timeout waiting for RPC from GSP", Cause.GPU_FAILED),
        (f"{XID_154} 0x0 (None) to 0x2 (OS Reboot)", Cause.GPU_FAILED),
        (f"{NVLINK} 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 07 (0x1)", Cause.SLOW_LINK),
        ("NVRM: Xid (PCI:0000:3b:00): 48, pid=12, DBE", Cause.CORRUPTION),
        ("NVRM: Xid (PCI:0000:3b:00): 95, pid=12, Uncontained", Cause.CORRUPTION),
        ("NVRM: Xid (PCI:0000:3b:00): 74, pid=12, NVLink: fatal error", Cause.SLOW_LINK),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 04", Cause.SLOW_LINK),
    ],
)
def test_only_errors_of_memory_are_called_corruption(machine: Path, message: str, cause: Cause) -> None:
    reader = DeviceReader(0, machine, no_driver)
    with (machine / "dev/kmsg").open("a") as log:
        log.write(f"4,101,9,-;{message}\n")
    assert [item.cause for item in judged(reader).culprits] == [cause]


def test_a_driver_reports_replays_links_and_errors_without_the_kernels_log(machine: Path) -> None:
    driver = FakeDriver()
    (machine / "dev/kmsg").unlink()
    reader = DeviceReader(0, machine, lambda: Nvml(library=driver))
    driver.replays += 100  # a link of generation 5 with 16 lanes may have 102 in 100 s
    assert judged(reader).status is Verdict.PASS
    driver.replays += 400
    found = judged(reader)
    assert (found.status, "pcie_replay" in found.message) == (Verdict.FAIL, True)
    assert "kernel log on node" in found.message
    driver.replays, driver.xids, driver.recoveries = 3, [79], 1
    found = judged(reader)
    assert {"Xid 79" in found.message, "nvlink_recovery" in found.message} == {True}


def test_a_device_that_is_gone_at_the_end_is_a_fault(machine: Path) -> None:
    driver = FakeDriver()
    reader = DeviceReader(0, machine, lambda: Nvml(library=driver))
    driver.bus = b""
    found = judged(reader)
    assert found.status is Verdict.FAIL
    assert found.culprits[0].cause is Cause.GPU_FAILED
    assert "gpu/0000:3b:00.0 on node" in found.message


def test_nothing_readable_is_unknown_and_not_healthy(tmp_path: Path) -> None:
    found = judged(DeviceReader(0, tmp_path, no_driver))
    assert (found.status, found.required, found.measured) == (Verdict.SKIPPED, False, None)
    assert "No such file" in found.message
    assert judge.errors(plan(), parsed(lines())).status is Verdict.SKIPPED  # an older version's evidence


def space(control: int, size: int = 4096) -> bytes:
    """Configuration of a bridge with two extended capabilities, the second of which is access control."""
    content = bytearray(4096)
    struct.pack_into("<I", content, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)
    struct.pack_into("<IHH", content, 0x148, 0x000D | 1 << 16, 0x5F, control)
    return bytes(content[:size])


@pytest.mark.parametrize(
    ("config", "kind", "expected"),
    [
        (space(0x1D), "identity", True),  # SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+
        (space(0x1D), "DMA", False),  # a translating IOMMU needs it
        (space(0x00), "identity", False),
        (space(0x1D, 64), "identity", False),  # without root only 64 bytes are readable
    ],
)
def test_access_control_of_bridges_is_reported(
    machine: Path, config: bytes, kind: str, expected: bool
) -> None:
    written(machine, "sys/bus/pci/devices/0000:17:00.0/class", "0x060400")
    written(machine, "sys/bus/pci/devices/0000:17:00.0/config", config)
    written(machine, "sys/kernel/iommu_groups/0/type", kind)
    reader = DeviceReader(0, machine, no_driver)
    assert reader.changes().redirecting == (
        None if len(config) == 64 else ("0000:17:00.0",) if config[0x14E] else ()
    )
    found = judged(reader)
    assert found.status is Verdict.PASS
    assert ("access control" in found.message) == expected


def test_the_driver_library_is_called_with_its_own_types() -> None:
    found = Nvml(library=FakeDriver())
    assert found.counters()["0000:3b:00.0"]["pcie_bits_s"] == 512 * 10**9
    assert found.state().link == (5, 16)
    assert ctypes.sizeof(ctypes.c_void_p) == 8
