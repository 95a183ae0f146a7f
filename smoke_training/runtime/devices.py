"""Read error counters of this node's devices twice: RDMA ports, GPUs, Xid errors in the kernel's log.

All sources become one table, "source/device/counter" to a count. A source that cannot be read is named with
the reason and never counted as 0. PCI configuration needs root: only its first 64 bytes are public (Linux
`drivers/pci/pci-sysfs.c`). Untested on hardware.
"""

import os
import re
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from smoke_training import files
from smoke_training.evidence.gpus import DeviceChanges
from smoke_training.runtime import counters
from smoke_training.runtime.nvml import Nvml

# NVIDIA "XID Errors" r590; SXid: NVIDIA Fabric Manager user guide, "NVSwitch SXids".
_XID = re.compile(r"NVRM: Xid \(PCI:([\da-fA-F:.]+)\): (\d+)(.*)")
# Xid 154: "changed from 0x0 (None) to 0x2 (OS Reboot)". Releases name the values differently; 0 is none.
_CHANGED = re.compile(r"changed .*?\bto 0x([\da-fA-F]+)")
_REQUIRED = re.compile(r"(Reset|Reboot) Required")
_FATAL = re.compile(r"\bFatal\b")  # of Xid 144 to 150 "NETIR_LINK_EVT  Fatal  XC0", in place of "Nonfatal"
_MESSAGE = re.compile(r"^\d+,(\d+),[^;]*;(.*)$", re.MULTILINE)  # Linux Documentation/ABI/testing/dev-kmsg
_SXID = re.compile(r"SXid \(PCI:([\da-fA-F:.]+)\): (\d+), (Fatal|Non-fatal)")
BRIDGE = "0x0604"  # PCI class of bridges
ACS, REDIRECT = 0x0D, 0x0C  # extended capability; request and completion redirect of its control register
# PortCounters of InfiniBand stop at their maximum: 16, 8 and 4 bits (Linux drivers/infiniband/core/sysfs.c).
MOST = {
    "symbol_error": 65535, "port_rcv_errors": 65535, "port_rcv_remote_physical_errors": 65535,
    "port_xmit_discards": 65535, "link_error_recovery": 255, "link_downed": 255,
    "local_link_integrity_errors": 15, "excessive_buffer_overrun_errors": 15,
}  # fmt: skip
RATES = frozenset({"pcie_bits_s"})  # counters that are rates: the later reading counts

Table = dict[str, int]


class DeviceReader:
    """One node's devices, read at its creation and at `changes`; `root` has the kernel's files."""

    def __init__(self, node: int, root: Path = Path("/"), driver: Callable[[], Nvml] = Nvml) -> None:
        self._node, self._root, self._began = node, root, time.monotonic()
        self._unreadable: dict[str, str] = {}
        self._driver: Nvml | None = None
        try:
            self._driver = driver()
        except OSError as error:
            self._unreadable["gpu"] = str(error)
        self._watched = self._driver is not None and self._driver.watch()
        self._before = self._read()
        self._last, _ = self._messages(0)

    def changes(self) -> DeviceChanges:
        """Return the differences since the creation; a counter that went back was reset and counts from 0."""
        after, before = self._read(), self._before
        full = {
            name for name in after if before.get(name) == after[name] == MOST.get(name.rpartition("/")[2])
        }
        known = [name for name in after if name in before and name not in full]
        rates = {name for name in known if name.rpartition("/")[2] in RATES or after[name] < before[name]}
        changed = {name: after[name] - (0 if name in rates else before[name]) for name in known}
        counted, (_, messages) = len(changed), self._messages(self._last)
        if self._driver is not None and self._watched and "kernel log" in self._unreadable:
            messages.update(f"driver/{bus}/xid {code}" for bus, code in self._driver.xids())
        changed |= messages
        there = {_device(name) for name in after}
        return DeviceChanges(
            node=self._node,
            seconds=time.monotonic() - self._began,
            counted=counted,
            changed={name: count for name, count in changed.items() if count},
            lost=tuple(sorted({_device(name) for name in before if _device(name) not in there})),
            unreadable=self._unreadable
            | {name: f"saturated at {after[name]} (reset it with perfquery -R)" for name in sorted(full)},
            redirecting=self._redirecting(),
            iommu=self._iommu(),
        )

    def _read(self) -> Table:
        sources = {"port": counters.port_counts(self._root / "sys/class/infiniband")}
        if self._driver is not None:
            sources["gpu"] = self._driver.counters()
        return {
            f"{source}/{device}/{name}": count
            for source, devices in sources.items()
            for device, counts in devices.items()
            for name, count in counts.items()
        }

    def _messages(self, after: int) -> tuple[int, Counter[str]]:
        """Return the number of the log's last message, and the Xid and SXid errors after a number."""
        found, last = Counter[str](), after
        try:
            log = os.open(self._root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._unreadable["kernel log"] = error.strerror or str(error)
            return last, found
        text = ""
        try:
            while True:
                try:
                    record = os.read(log, 8192)  # the device returns one record at a time
                except BrokenPipeError:  # overwritten while it was read
                    continue
                except BlockingIOError:
                    break
                if not record:
                    break
                text += record.decode(errors="replace") + "\n"
        except OSError as error:
            self._unreadable["kernel log"] = error.strerror or str(error)
        finally:
            os.close(log)
        for number, line in _MESSAGE.findall(text):
            if int(number) > after:
                last = int(number)
                for bus, code, words in _XID.findall(line):
                    changed = _CHANGED.search(words)  # the value that an action changed to decides
                    asks = int(changed[1], 16) > 0 if changed else _REQUIRED.search(words) is not None
                    more = " asks" if asks else " fatal" if _FATAL.search(words) else ""
                    found[f"kernel/{bus}/xid {code}{more}"] += 1
                for bus, code, how in _SXID.findall(line):
                    found[f"kernel/{bus}/sxid {code} {how.lower()}"] += 1
        return last, found

    def _redirecting(self) -> tuple[str, ...] | None:
        found, readable = [], False
        for device in sorted((self._root / "sys/bus/pci/devices").glob("*")):
            if not "".join(files.lines(device / "class")).startswith(BRIDGE):
                continue
            try:
                space = (device / "config").read_bytes()
            except OSError:
                continue
            readable |= len(space) > 256
            if _access_control(space) & REDIRECT:
                found.append(device.name)
        return tuple(found) if readable else None

    def _iommu(self) -> str | None:
        groups = self._root / "sys/kernel/iommu_groups"
        kinds = {line for path in groups.glob("*/type") for line in files.lines(path)}
        if kinds:
            return "passthrough" if kinds == {"identity"} else "translating"
        return "off" if groups.is_dir() else None


def _device(name: str) -> str:
    return name.rpartition("/")[0]


def _access_control(space: bytes) -> int:
    """Return the ACS control register of a configuration space; 0 without that capability."""
    at, seen = 0x100, 0
    while at and at + 8 <= len(space) and seen < 64:
        header, seen = struct.unpack_from("<I", space, at)[0], seen + 1
        if header & 0xFFFF == ACS:
            return int(struct.unpack_from("<H", space, at + 6)[0])
        at = header >> 20
    return 0
