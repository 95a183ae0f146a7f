"""Facts about the transport of training traffic in an NCCL log (pure).

A silent fallback to TCP sockets raises no error and costs a factor of 13 and more. NCCL logs its choice with
NCCL_DEBUG=INFO: `Using network X` (NVIDIA/nccl, `src/plugin/net.cc`), `NET/OFI Selected provider is efa,
fabric is efa (found 32 nics)` (aws/aws-ofi-nccl, `src/nccl_ofi_net.cpp`), `NET/IB : Using [0]mlx5_0:1/RoCE
...` (NVIDIA/nccl, `src/transport/net_ib/init.cc`: ports that were active when it started, storage adapters
among them), `Channel 00/0 : 7[7] -> 8[0] [receive] via NET/IB/0(3)/GDRDMA` (`src/transport/net.cc`: the
device, the rank whose proxy drives it, GPUDirect RDMA), `NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1`
(merged NICs), `NVLS comm 0x...` (`src/transport/nvls.cc`), `Connected CollNet` (SHARP) and `comm ... MNNVL 1`
(NVLink between nodes, `src/init.cc`; NVIDIA/nccl@5067397c). Google's plugins call
themselves `FasTrak` (TCPXO), `GPUDirectTCPX_v7` (TCPX) and `gIB` (AI Hypercomputer documentation, "Enable
NCCL/gIB"; elideng-sg/hypercomputer-internode-deepdive@db026b5f lab-22/tcpxo_transport_fastrak.txt, @12bf93b1
lab-18/after_tcpx_transport.txt). TCPX's bytes are in the counters of the GPUs' interfaces, TCPXO's in none
(lab-18/after_tcpx_monitoring.txt, @0d91a221 lab-22/tcpxo_monitoring_validation.txt). Verified: sockets.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_NETWORK = re.compile(r"Using network (.+?)\s*$")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([\w;.-]+)")
_FOUND = re.compile(r"\(found (\d+) nics\)")
_IB = re.compile(r"NET/g?IB : Using (.*)")
# Merged ports are in braces in releases 2.20 to 2.23 and HPC-X (v2.23.4-1 src/transport/net_ib.cc).
_DEVICE = re.compile(r"\[(\d+)\](?:=\{([^}]*)\}|(\S+))")
# Adapter without the suffix of its Data Direct device (v2.28.9-1, `"%s_dma"`), port, link layer.
_PORT = re.compile(r"([^\s:\]]+?)(?:_dma)?:(\d+)[\d:]*/(\w+)")
_NUMBERED = re.compile(r"NET/(?:g?IB(?:ext)?(?:_v\d+)?|UCX)")  # networks with the device numbers of that list
_VIA = re.compile(r"Channel [\d/]+ ?: .* via ([^\s/]+(?:/[A-Za-z][\w. ]*)?)(?:/(\d+)(?:\(\d+\))?(/GDRDMA)?)?")
_NVLS = re.compile(r"NVLS comm 0x")
_COLLNET = re.compile(r"Connected CollNet|Algo COLLNET", re.IGNORECASE)
_MNNVL = re.compile(r"\bMNNVL ([01])\b")
_MERGED = re.compile(r"Made virtual device \[(\d+)\] name=(\S+)")
_PLUGIN = re.compile(r"Initializing (?:network )?([\w-]+),? (?:version:? )?v?(\d[\w.-]*)")


@dataclass(frozen=True, kw_only=True)
class LogFacts:
    """Facts of an NCCL log: networks and providers chosen, adapters found, how channels connect."""

    networks: tuple[str, ...]
    providers: tuple[str, ...]
    adapters: int | None
    via: Mapping[str, int]  # "NET/Socket", "NET/IB", "P2P/CUMEM", "SHM/direct" -> channel ends
    nvls: bool
    lines: int
    ports: Mapping[str, str] = field(default_factory=dict)  # used by NET/IB: "mlx5_0/1" -> "IB" or "RoCE"
    used: tuple[str, ...] = ()  # of these, the ones of channels; empty where the log has none
    direct: Mapping[str, int] = field(default_factory=dict)  # like `via`, with GPUDirect RDMA
    collnet: bool = False  # the network's switches reduce (SHARP)
    mnnvl: bool | None = None  # NVLink between nodes is in use; None where the log does not say
    plugins: tuple[str, ...] = ()  # "aws-ofi-nccl 1.16.3"


def read_log(lines: Iterable[str]) -> LogFacts:
    """Read the lines of NCCL_DEBUG=INFO of one or more ranks; other lines are skipped."""
    networks, providers, adapters = set[str](), set[str](), set[int]()
    via, direct, numbers, devices = Counter[str](), Counter[str](), set[int](), dict[int, _Ports]()
    nvls, collnet, count = False, False, 0
    merged, mnnvl, plugins = dict[int, str](), set[str](), set[str]()
    for line in lines:
        if "NCCL" not in line and "NET/" not in line:
            continue
        count += 1
        networks |= set(_NETWORK.findall(line))
        providers |= set(_PROVIDER.findall(line))
        adapters |= {int(found) for found in _FOUND.findall(line)}
        if ib := _IB.search(line):
            devices |= _devices(ib.group(1))
        if channel := _VIA.search(line):
            name, number, gpudirect = channel.groups()
            via[name.strip()] += 1
            direct[name.strip()] += bool(gpudirect)
            numbers |= {int(number)} if number and _NUMBERED.fullmatch(name) else set()
        nvls, collnet = nvls or bool(_NVLS.search(line)), collnet or bool(_COLLNET.search(line))
        merged |= {int(number): names for number, names in _MERGED.findall(line)}
        mnnvl |= set(_MNNVL.findall(line))
        plugins |= {" ".join(found) for found in _PLUGIN.findall(line)}
    found = sorted(port for device in devices.values() for port in device)
    ports = {name.rpartition("/")[0]: name for name, _ in found}
    parts: dict[int, list[str | None]] = {
        number: [ports.get(name.removesuffix("_dma")) for name in names.split("+")]
        for number, names in merged.items()
    }
    parts |= {number: [name for name, _ in device] for number, device in devices.items()}
    used = [name for number in numbers for name in parts.get(number, [None])]
    return LogFacts(
        networks=tuple(sorted(networks)),
        providers=tuple(sorted(providers)),
        adapters=min(adapters) if adapters else len(set(found)) or None,
        via=dict(via),
        nvls=nvls,
        lines=count,
        ports=dict(found),
        # A number that the log does not explain is a merged device of unknown parts.
        used=() if None in used else tuple(sorted({name for name in used if name is not None})),
        direct={name: ends for name, ends in direct.items() if ends},
        collnet=collnet,
        mnnvl="0" not in mnnvl if mnnvl else None,
        plugins=tuple(sorted(plugins)),
    )


_Ports = tuple[tuple[str, str], ...]
"""Ports of one device, several where they are merged: (name/port, link layer)."""


def _devices(text: str) -> dict[int, _Ports]:
    """Return the ports by number of the device that channels name.

    In a list with merged ports, single ones are printed with their own number, not the device's.
    """
    listed = [
        (int(number), tuple((f"{name}/{port}", link) for name, port, link in _PORT.findall(merged or single)))
        for number, merged, single in _DEVICE.findall(text)
    ]
    by_place = "={" in text
    return {place if by_place else number: ports for place, (number, ports) in enumerate(listed) if ports}
