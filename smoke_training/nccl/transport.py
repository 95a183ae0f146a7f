"""Transport of the training traffic: NCCL log, environment, and the rules per fabric (pure).

A silent fallback to TCP sockets raises no error and costs a factor of 13 and more. NCCL logs its choice with
NCCL_DEBUG=INFO: `Using network X` (NVIDIA/nccl, `src/plugin/net.cc`), `NET/OFI Selected provider is efa,
fabric is efa (found 32 nics)` (aws/aws-ofi-nccl, `src/nccl_ofi_net.cpp`), `NET/IB : Using [0]mlx5_0:1/RoCE
...` (NVIDIA/nccl, `src/transport/net_ib/init.cc`: ports that were active when it started, storage adapters
among them), `Channel 00/0 : 7[7] -> 8[0] [receive] via NET/IB/0(3)/GDRDMA` (`src/transport/net.cc`: the
device, the rank whose proxy drives it, GPUDirect RDMA), `NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1`
(merged NICs), `NVLS comm 0x...` (`src/transport/nvls.cc`), `Connected CollNet` (SHARP) and `comm ... MNNVL 1`
(NVLink between nodes, `src/init.cc`; NVIDIA/nccl@5067397c). Google's plugins call
themselves `FasTrak` (TCPXO), `GPUDirectTCPX_v7` (TCPX) and `gIB`
(elideng-sg/hypercomputer-internode-deepdive@db026b5f assets/lab-22/tcpxo_transport_fastrak.txt, @12bf93b1
assets/lab-18/after_tcpx_transport.txt; AI Hypercomputer documentation, "Enable NCCL/gIB"). TCPX's bytes are
in the counters of the GPUs' interfaces; TCPXO bypasses the kernel, and no counter has them (measured there,
assets/lab-18/after_tcpx_monitoring.txt, @0d91a221 assets/lab-22/tcpxo_monitoring_validation.txt). Those of
sockets were verified on a GPU; the others are from sources and published logs, untested on hardware.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from smoke_training.fabric import Fabric

LINK_LOCAL = "pod-id-link0"  # the EKS Pod Identity agent's interface: carries credentials, never training
RECORDED = (
    "NCCL_",
    "FI_",
    "GLOO_",
    "OFI_NCCL_",
    "RDMAV_",
    "UCX_",
    "CUDA_VISIBLE_DEVICES",
    "NVSHMEM_",
    "MASTER_ADDR",
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|KEY", re.IGNORECASE)

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


def environment(values: Mapping[str, str]) -> dict[str, str]:
    """The settings that choose a transport, without anything that looks like a secret."""
    return {
        key: value
        for key, value in sorted(values.items())
        if key.startswith(RECORDED) and not _SECRET.search(key)
    }


@dataclass(frozen=True)
class VariableRule:
    """A rule about one variable: `fits(value or None)`, and the required value as text."""

    name: str
    fits: Callable[[str | None], bool]
    wanted: str


@dataclass(frozen=True)
class Proof:
    """Evidence of a fabric: a pattern of `Using network`, the providers, and settings that must hold.

    `counted`: its log has the number of adapters found. `link` is the link layer of its ports, where NET/IB
    names them: hosts have adapters of the other one for storage and management. `interfaces` is the variable
    with the names of its network interfaces, where it has no RDMA ports; `invisible`: no counter has the
    bytes that they send. `mnnvl`: nodes share NVLink, so the log must say so.
    """

    network: re.Pattern[str]
    providers: tuple[str, ...]
    settings: tuple[VariableRule, ...]
    counted: bool = False
    link: str | None = None
    interfaces: str | None = None
    invisible: bool = False
    mnnvl: bool = False


def _not(*refused: str) -> Callable[[str | None], bool]:
    return lambda value: value is None or value.strip().lower() not in refused


def excludes(selection: str | None, interface: str) -> bool:
    """Report whether NCCL_SOCKET_IFNAME excludes an interface.

    A list of prefixes; `^` in front excludes them, `=` requires exact names (NVIDIA NCCL user guide,
    "Environment Variables"). Unset, NCCL excludes only lo and docker.
    """
    if not selection:
        return interface.startswith(("lo", "docker"))
    excluding = selection.startswith("^")
    names = selection.removeprefix("^")
    exact = names.startswith("=")
    listed = [name.strip() for name in names.removeprefix("=").split(",") if name.strip()]
    matched = interface in listed if exact else interface.startswith(tuple(listed))
    return matched if excluding else not matched


_COMMON = (
    VariableRule("NCCL_NET", _not("socket"), "unset or the fabric's own network, never Socket"),
    VariableRule("NCCL_NET_PLUGIN", _not("none"), "unset or the fabric's plugin, never none"),
    VariableRule("NCCL_P2P_DISABLE", _not("1"), "unset or 0"),
)
_EFA = Proof(
    re.compile(r"libfabric", re.IGNORECASE),
    ("efa",),
    (
        *_COMMON,
        VariableRule("FI_PROVIDER", lambda value: value in (None, "efa"), "efa, or unset"),
        VariableRule(
            "NCCL_SOCKET_IFNAME",
            lambda value: excludes(value, LINK_LOCAL),
            f"a list that leaves {LINK_LOCAL} out, such as ^lo,docker,{LINK_LOCAL}",
        ),
    ),
    counted=True,
)
_INFINIBAND = Proof(
    re.compile(r"\b(?:g?IB|UCX)", re.IGNORECASE),  # UCX: HPC-X with NCCL_PLUGIN_P2P=ucx, over the same ports
    (),
    (*_COMMON, VariableRule("NCCL_IB_DISABLE", _not("1"), "unset or 0")),
    counted=True,
    link="IB",
)
PROOFS: Mapping[Fabric, Proof] = {
    Fabric.EFA: _EFA,
    Fabric.INFINIBAND: _INFINIBAND,
    Fabric.RDMA: replace(_INFINIBAND, link="RoCE"),
    Fabric.TCPX: Proof(
        re.compile(r"GPUDirectTCPX", re.IGNORECASE),
        (),
        _COMMON,
        interfaces="NCCL_GPUDIRECTTCPX_SOCKET_IFNAME",
    ),
    Fabric.TCPXO: Proof(
        re.compile(r"FasTrak|TCPXO", re.IGNORECASE),
        (),
        _COMMON,
        interfaces="NCCL_FASTRAK_IFNAME",
        invisible=True,
    ),
    Fabric.NVLINK: Proof(
        re.compile(""),  # whichever network connects racks
        (),
        (*_COMMON, VariableRule("NCCL_MNNVL_ENABLE", _not("0"), "unset, 1 or 2")),
        invisible=True,
        mnnvl=True,
    ),
}


def must_be_proven(fabric: Fabric) -> bool:
    """Report whether accelerators use this fabric instead of TCP sockets, with evidence in NCCL's log."""
    return fabric in PROOFS


def invisible(fabric: Fabric) -> bool:
    """Report whether no counter has the bytes of this fabric, so that only those of others are seen."""
    return fabric in PROOFS and PROOFS[fabric].invisible


def interfaces(fabric: Fabric, values: Mapping[str, str], known: Iterable[str]) -> list[str] | None:
    """Return the network interfaces, of those `known`, that carry this fabric; None for RDMA ports.

    Without the setting that names them, all but the pod's first one, which has everything else.
    """
    variable = PROOFS[fabric].interfaces if fabric in PROOFS else None
    if variable is None:
        return None
    named = {name.strip() for name in values.get(variable, "").split(",") if name.strip()}
    return sorted(name for name in known if (name in named if named else name not in ("lo", "eth0")))


def setting_problems(fabric: Fabric, values: Mapping[str, str]) -> list[str]:
    """Return every setting that prevents the use of a fabric, as `NAME: got value; must be ...`."""
    known = PROOFS.get(fabric)
    if known is None:
        return []
    return [
        f"{rule.name}: {_got(values.get(rule.name))}; must be {rule.wanted}"
        for rule in known.settings
        if not rule.fits(values.get(rule.name))
    ]


def log_problems(fabric: Fabric, facts: LogFacts) -> list[str]:
    """Return contradictions of a log to the fabric; a log without any network is a problem too."""
    known = PROOFS.get(fabric)
    if known is None:
        return []
    found = []
    if not facts.networks:
        found.append("the NCCL log names no network")
    if known.mnnvl and facts.mnnvl is False:
        found.append("the NCCL log has MNNVL 0: no NVLink between nodes (is IMEX running on all of them?)")
    found += [f'the NCCL log has "Using network {n}"' for n in facts.networks if not known.network.search(n)]
    found += [
        f"{count} channel ends go via {name}"
        for name, count in sorted(facts.via.items())
        if name.startswith("NET/Socket")
    ]
    if known.providers:
        wrong = [name for name in facts.providers if name not in known.providers]
        found += [f"libfabric selected the provider {name}" for name in wrong]
    return found


def adapters_found(fabric: Fabric, facts: LogFacts) -> int | None:
    """Return the number of adapters of the fabric found by NCCL; None where its log lacks it."""
    if facts.ports:
        return len(_ports(fabric, facts))
    return facts.adapters


def adapters_used(fabric: Fabric, facts: LogFacts, sent: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes sent by the fabric's RDMA ports, as named by the log.

    Where it only has their number, as with EFA's plugin, the busiest so many; where channels name their
    devices, only these. Where it has neither, the sum, which proves nothing about single adapters.
    """
    if facts.ports:
        named = _ports(fabric, facts)
        chosen = [port for port in named if port in facts.used] or named
        return {port: sent[port] for port in chosen if port in sent}
    if facts.adapters is None:
        return {"all RDMA ports": sum(sent.values())}
    busiest = sorted(sent, key=lambda port: (-sent[port], port))[: facts.adapters]
    return {port: sent[port] for port in sorted(busiest)}


def _ports(fabric: Fabric, facts: LogFacts) -> list[str]:
    wanted = PROOFS[fabric].link if fabric in PROOFS else None
    return [port for port, link in facts.ports.items() if wanted in (None, link)]


def adapter_problems(fabric: Fabric, facts: LogFacts, adapters: int | None, *, direct: bool) -> list[str]:
    """Return proven lacks of adapters and, where the machine has it (`direct`), of GPUDirect RDMA."""
    found, remote = adapters_found(fabric, facts), _remote(facts)
    problems = []
    if _counted(fabric, adapters) and found is not None and adapters is not None and found < adapters:
        problems.append(f"the NCCL log found {found} adapters, the machine type has {adapters}")
    if direct and remote and not any(facts.direct.get(name) for name in remote):
        ends = sum(remote.values())
        problems.append(f"none of {ends} channel ends between nodes goes by GPUDirect RDMA")
    return problems


def adapter_doubts(fabric: Fabric, facts: LogFacts, adapters: int | None, *, direct: bool) -> list[str]:
    """Return the lacks that the log neither proves nor excludes."""
    remote, doubts = _remote(facts), []
    if _counted(fabric, adapters) and adapters_found(fabric, facts) is None:
        doubts.append(f"the NCCL log lacks the number of adapters found; the machine type has {adapters}")
    ends, there = sum(remote.values()), sum(facts.direct.get(name, 0) for name in remote)
    if direct and 0 < there < ends:
        doubts.append(f"{ends - there} of {ends} channel ends between nodes go without GPUDirect RDMA")
    if fabric in PROOFS and PROOFS[fabric].mnnvl and facts.mnnvl is None:
        doubts.append("the NCCL log does not say whether NVLink between nodes is in use (MNNVL)")
    if direct and not remote:
        doubts.append("the NCCL log names no channel between nodes, so GPUDirect RDMA is not proven")
    return doubts


def _counted(fabric: Fabric, adapters: int | None) -> bool:
    return adapters is not None and fabric in PROOFS and PROOFS[fabric].counted


def _remote(facts: LogFacts) -> dict[str, int]:
    """Return channel ends between nodes, by network."""
    return {name: ends for name, ends in facts.via.items() if name.startswith("NET/")}


def differences(left: Mapping[str, str], right: Mapping[str, str]) -> list[str]:
    """Return settings that differ between two nodes, as `NAME: value | value`."""
    return [
        f"{name}: {_got(left.get(name))} | {_got(right.get(name))}"
        for name in sorted(set(left) | set(right))
        if left.get(name) != right.get(name)
    ]


def _got(value: str | None) -> str:
    return "not set" if value is None else f'got "{value}"'
