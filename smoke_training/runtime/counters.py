"""Read counters of the kernel and of network adapters. An absent counter is None, never 0.

Everything is read unprivileged. `/proc/net` belongs to the reader's network namespace, so a pod sees its own;
`/sys/class/net` shows the namespace it was mounted in and is used only if both list the same interfaces.
"""

import fcntl
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from smoke_training import files

PROC_NET = Path("/proc/net")
CLASS_NET = Path("/sys/class/net")
CLASS_INFINIBAND = Path("/sys/class/infiniband")

SIOCGIFFLAGS, SIOCGIFADDR = 0x8913, 0x8915  # linux/sockios.h
IFF_UP, IFF_RUNNING = 0x1, 0x40  # linux/if.h; running: operational state up (RFC 2863)
_UP_STATES = ("up", "unknown")  # drivers without state reporting have unknown


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """One network interface: bytes since its creation, its state, its IPv4 address."""

    rx_bytes: int
    tx_bytes: int
    up: bool | None  # switched on by the administrator
    running: bool | None  # able to pass packets: it has a carrier
    operstate: str | None
    carrier: int | None
    carrier_changes: int | None
    speed_mbit_s: int | None
    address: str | None


@dataclass(frozen=True, kw_only=True)
class Tcp:
    """Segments of this network namespace.

    `spurious` are retransmissions that the receiver reported as duplicates (RFC 2883): nothing was lost.
    """

    sent: int
    retransmitted: int
    spurious: int | None


@dataclass(frozen=True, kw_only=True)
class Port:
    """Counters of one port of an RDMA adapter, and its state."""

    active: bool | None
    tx_bytes: int | None
    rx_bytes: int | None
    tx_packets: int | None
    retransmitted: int | None


def interfaces(proc: Path = PROC_NET, sys: Path = CLASS_NET) -> dict[str, NetworkInterface]:
    """Return every interface of this network namespace by name; empty where the kernel shows none."""
    rows = [line.split(":", 1) for line in files.lines(proc / "dev") if ":" in line]
    counts = {name.strip(): [int(word) for word in text.split()] for name, text in rows}
    trusted = {path.name for path in sys.glob("*/")} == set(counts)
    return {
        name: _interface(name, row, sys / name if trusted else None, own=proc == PROC_NET)
        for name, row in counts.items()
        if len(row) >= 9
    }


def bytes_of(name: str, proc: Path = PROC_NET) -> tuple[int, int] | None:
    """Return (received, sent) bytes of one interface: a cheap reading around a single transfer."""
    for line in files.lines(proc / "dev"):
        found, _, text = line.partition(":")
        if found.strip() == name and len(row := text.split()) >= 9:
            return int(row[0]), int(row[8])
    return None


def tcp(proc: Path = PROC_NET) -> Tcp | None:
    """Return TCP segment counters of this network namespace; None where the kernel does not show them."""
    plain, extended = _table(proc / "snmp", "Tcp:"), _table(proc / "netstat", "TcpExt:")
    if "OutSegs" not in plain or "RetransSegs" not in plain:
        return None
    # TCPDSACKRecvSegs counts segments (Linux 5.5); older kernels count only the messages.
    spurious = extended.get("TCPDSACKRecvSegs", extended.get("TCPDSACKRecv"))
    return Tcp(sent=plain["OutSegs"], retransmitted=plain["RetransSegs"], spurious=spurious)


def ports(root: Path = CLASS_INFINIBAND) -> dict[str, Port]:
    """Return every RDMA port as "adapter/port": InfiniBand, RoCE and EFA (untested on hardware)."""
    return {
        name: _port(counts, _text(root / name.replace("/", "/ports/"), "state"))
        for name, counts in port_counts(root).items()
    }


def _interface(name: str, row: list[int], folder: Path | None, *, own: bool) -> NetworkInterface:
    flags = _flags(name) if own else None
    return NetworkInterface(
        rx_bytes=row[0],
        tx_bytes=row[8],
        up=None if flags is None else bool(flags & IFF_UP),
        running=_running(flags, folder),
        operstate=_text(folder, "operstate"),
        carrier=_number(folder, "carrier"),
        carrier_changes=_number(folder, "carrier_changes"),
        speed_mbit_s=_speed(folder),
        address=_address(name) if own else None,
    )


def _running(flags: int | None, folder: Path | None) -> bool | None:
    if flags is not None:
        return bool(flags & IFF_RUNNING)
    state = _text(folder, "operstate")
    return None if state is None else state in _UP_STATES


def _speed(folder: Path | None) -> int | None:
    """Return Mb/s; adapters without a speed report -1 or an error."""
    found = _number(folder, "speed")
    return found if found is not None and found > 0 else None


def port_counts(root: Path = CLASS_INFINIBAND) -> dict[str, dict[str, int]]:
    """Return all counters of every RDMA port as "adapter/port", with those of its adapter."""
    found: dict[str, dict[str, int]] = {}
    for port in sorted(root.glob("*/ports/*")):
        counts = found.setdefault(f"{port.parent.parent.name}/{port.name}", {})
        for folder in (port.parent.parent / "hw_counters", port / "counters", port / "hw_counters"):
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                value = _number(folder, path.name)
                if value is not None:
                    counts[path.name] = value
    return found


def _port(counts: dict[str, int], state: str | None) -> Port:
    return Port(
        # "4: ACTIVE" (kernel Documentation/ABI/stable/sysfs-class-infiniband)
        active=None if state is None else state.endswith("ACTIVE"),
        tx_bytes=counts.get("tx_bytes", _scaled(counts.get("port_xmit_data"))),
        rx_bytes=counts.get("rx_bytes", _scaled(counts.get("port_rcv_data"))),
        tx_packets=counts.get("tx_pkts", counts.get("port_xmit_packets")),
        retransmitted=counts.get("retrans_pkts"),
    )


def _scaled(text: int | None) -> int | None:
    """Convert words of 4 bytes to bytes (kernel Documentation/ABI/stable/sysfs-class-infiniband)."""
    return None if text is None else 4 * text


def _flags(name: str) -> int | None:
    raw = _ask(name, SIOCGIFFLAGS)
    return None if raw is None else int(struct.unpack_from("=H", raw, 16)[0])


def _address(name: str) -> str | None:
    raw = _ask(name, SIOCGIFADDR)
    return None if raw is None else socket.inet_ntoa(raw[20:24])


def _ask(name: str, request: int) -> bytes | None:
    """Run an ioctl about an interface (netdevice(7)); None on an error."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            return fcntl.ioctl(end.fileno(), request, struct.pack("=16s24x", name.encode()[:15]))
        except OSError:
            return None


def _table(path: Path, prefix: str) -> dict[str, int]:
    """Parse a pair of lines of /proc/net/snmp or netstat: names, then values."""
    lines = [line.split()[1:] for line in files.lines(path) if line.startswith(prefix)]
    return {name: int(value) for name, value in zip(*lines[:2], strict=False)} if len(lines) >= 2 else {}


def _text(folder: Path | None, name: str) -> str | None:
    if folder is None:
        return None
    try:
        return (folder / name).read_text().strip()
    except OSError:
        return None


def _number(folder: Path | None, name: str) -> int | None:
    text = _text(folder, name)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
