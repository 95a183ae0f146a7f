"""Which transport carried the training traffic? The NCCL log, the environment, the rules per fabric (pure).

A silent fallback to TCP sockets raises no error and costs a factor of 13 and more. NCCL says what it chose
when NCCL_DEBUG=INFO: `Using network X` (NVIDIA/nccl, `src/plugin/net.cc`), `NET/OFI Selected provider is
efa, fabric is efa (found 32 nics)` (aws/aws-ofi-nccl), `NET/IB : Using [0]mlx5_0:1/RoCE ...`,
`Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA` and `NVLS comm 0x...`. Those of sockets
were read on a GPU of our own; the others are from published logs, untested on hardware of our own.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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
_IB = re.compile(r"NET/IB : Using ((?:\[\d+\]\S+ ?)+)")
_VIA = re.compile(r"Channel [\d/]+ ?: .* via ([^\s/]+(?:/[A-Za-z][\w. ]*)?)")
_NVLS = re.compile(r"NVLS comm 0x")


@dataclass(frozen=True, kw_only=True)
class LogFacts:
    """What an NCCL log proves: networks and providers chosen, adapters found, how channels connect."""

    networks: tuple[str, ...]
    providers: tuple[str, ...]
    adapters: int | None
    via: Mapping[str, int]  # "NET/Socket", "NET/IB", "P2P/CUMEM", "SHM/direct" -> channel ends
    nvls: bool
    lines: int


def read_log(lines: Iterable[str]) -> LogFacts:
    """Read the lines of NCCL_DEBUG=INFO of one or more ranks; other lines are passed over."""
    networks, providers, adapters = set[str](), set[str](), set[int]()
    via: dict[str, int] = {}
    nvls, count = False, 0
    for line in lines:
        if "NCCL" not in line and "NET/" not in line:
            continue
        count += 1
        networks |= set(_NETWORK.findall(line))
        providers |= set(_PROVIDER.findall(line))
        adapters |= {int(found) for found in _FOUND.findall(line)}
        if ib := _IB.search(line):
            adapters.add(ib.group(1).count("["))
        if channel := _VIA.search(line):
            name = channel.group(1).strip()
            via[name] = via.get(name, 0) + 1
        nvls = nvls or bool(_NVLS.search(line))
    return LogFacts(
        networks=tuple(sorted(networks)),
        providers=tuple(sorted(providers)),
        adapters=min(adapters) if adapters else None,
        via=via,
        nvls=nvls,
        lines=count,
    )


def environment(values: Mapping[str, str]) -> dict[str, str]:
    """The settings that choose a transport, without anything that looks like a secret."""
    return {
        key: value
        for key, value in sorted(values.items())
        if key.startswith(RECORDED) and not _SECRET.search(key)
    }


@dataclass(frozen=True)
class Setting:
    """A rule about one variable: `fits(value or None)`, and what it should be."""

    name: str
    fits: Callable[[str | None], bool]
    wanted: str


@dataclass(frozen=True)
class Proof:
    """What proves a fabric: a pattern of `Using network`, the providers, and settings that must hold."""

    network: re.Pattern[str]
    providers: tuple[str, ...]
    settings: tuple[Setting, ...]


def _not(*refused: str) -> Callable[[str | None], bool]:
    return lambda value: value is None or value.strip().lower() not in refused


def excludes(selection: str | None, interface: str) -> bool:
    """Whether NCCL_SOCKET_IFNAME leaves an interface out.

    A list of prefixes; `^` in front excludes them, `=` asks for exact names (NVIDIA NCCL user guide,
    "Environment Variables"). Unset, NCCL takes what it finds, so nothing but lo and docker is left out.
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
    Setting("NCCL_NET", _not("socket"), "unset or the fabric's own network, never Socket"),
    Setting("NCCL_NET_PLUGIN", _not("none"), "unset or the fabric's plugin, never none"),
    Setting("NCCL_P2P_DISABLE", _not("1"), "unset or 0"),
)
_EFA = Proof(
    re.compile(r"libfabric", re.IGNORECASE),
    ("efa",),
    (
        *_COMMON,
        Setting("FI_PROVIDER", lambda value: value in (None, "efa"), "efa, or unset"),
        Setting(
            "NCCL_SOCKET_IFNAME",
            lambda value: excludes(value, LINK_LOCAL),
            f"a list that leaves {LINK_LOCAL} out, such as ^lo,docker,{LINK_LOCAL}",
        ),
    ),
)
_RDMA = Proof(
    re.compile(r"\bg?IB", re.IGNORECASE),
    (),
    (*_COMMON, Setting("NCCL_IB_DISABLE", _not("1"), "unset or 0")),
)
PROOFS: Mapping[Fabric, Proof] = {
    Fabric.EFA: _EFA,
    Fabric.INFINIBAND: _RDMA,
    Fabric.RDMA: _RDMA,
    Fabric.TCPX: Proof(re.compile(r"GPUDirectTCPX", re.IGNORECASE), (), _COMMON),
    Fabric.TCPXO: Proof(re.compile(r"FasTrak|TCPXO", re.IGNORECASE), (), _COMMON),
}


def must_be_proven(fabric: Fabric) -> bool:
    """Whether accelerators use this fabric instead of TCP sockets, and say so in NCCL's log."""
    return fabric in PROOFS


def setting_problems(fabric: Fabric, values: Mapping[str, str]) -> list[str]:
    """Every setting that keeps a fabric from being used, as `NAME: got value; must be ...`."""
    known = PROOFS.get(fabric)
    if known is None:
        return []
    return [
        f"{rule.name}: {_got(values.get(rule.name))}; must be {rule.wanted}"
        for rule in known.settings
        if not rule.fits(values.get(rule.name))
    ]


def log_problems(fabric: Fabric, facts: LogFacts) -> list[str]:
    """What in a log contradicts the fabric; a log that names no network at all is a problem too."""
    known = PROOFS.get(fabric)
    if known is None:
        return []
    found = []
    if not facts.networks:
        found.append("the NCCL log names no network")
    found += [f'the NCCL log says "Using network {n}"' for n in facts.networks if not known.network.search(n)]
    found += [
        f"{count} channel ends go via {name}"
        for name, count in sorted(facts.via.items())
        if name.startswith("NET/Socket")
    ]
    if known.providers:
        wrong = [name for name in facts.providers if name not in known.providers]
        found += [f"libfabric selected the provider {name}" for name in wrong]
    return found


def differences(left: Mapping[str, str], right: Mapping[str, str]) -> list[str]:
    """Settings in which two nodes differ, as `NAME: value | value`."""
    return [
        f"{name}: {_got(left.get(name))} | {_got(right.get(name))}"
        for name in sorted(set(left) | set(right))
        if left.get(name) != right.get(name)
    ]


def _got(value: str | None) -> str:
    return "not set" if value is None else f'got "{value}"'
