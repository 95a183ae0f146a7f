"""Transport of the training traffic: environment, and the rules per fabric (pure)."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from smoke_training.fabric import Fabric
from smoke_training.model import Cause
from smoke_training.nccl.log import LogFacts

LINK_LOCAL = "pod-id-link0"  # the EKS Pod Identity agent's interface: carries credentials, never training
_NAMES = "NCCL_ FI_ GLOO_ OFI_NCCL_ RDMAV_ UCX_ CUDA_VISIBLE_DEVICES NVSHMEM_ MASTER_ADDR"
RECORDED = tuple(_NAMES.split())
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|KEY", re.IGNORECASE)


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
    names them. `interfaces` is the variable with the names of its network interfaces, where it has no RDMA
    ports; `invisible`: no counter has the bytes that they send. `mnnvl`: nodes share NVLink.
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
    VariableRule("NCCL_P2P_DISABLE", _not("1"), "unset or 0"),
)
# NCCL itself has InfiniBand and RoCE, where "none" may be on purpose (NVIDIA/aicr#1428).
_BY_PLUGIN = (
    *_COMMON,
    VariableRule("NCCL_NET_PLUGIN", _not("none"), "unset or the fabric's plugin, never none"),
)
_EFA = Proof(
    re.compile(r"libfabric", re.IGNORECASE),
    ("efa",),
    (
        *_BY_PLUGIN,
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
        _BY_PLUGIN,
        interfaces="NCCL_GPUDIRECTTCPX_SOCKET_IFNAME",
    ),
    Fabric.TCPXO: Proof(
        re.compile(r"FasTrak|TCPXO", re.IGNORECASE),
        (),
        _BY_PLUGIN,
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
    return len(_ports(fabric, facts)) if facts.ports else facts.adapters


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


def adapter_problems(
    fabric: Fabric, facts: LogFacts, adapters: int | None, *, direct: bool
) -> list[tuple[Cause, str]]:
    """Return proven lacks of adapters and, where the machine has it (`direct`), of GPUDirect RDMA."""
    found, remote = adapters_found(fabric, facts), _remote(facts)
    problems = []
    if _counted(fabric, adapters) and found is not None and adapters is not None and found < adapters:
        text = f"the NCCL log found {found} adapters, the machine type has {adapters}"
        problems.append((Cause.DEAD_RAIL, text))
    if direct and remote and not any(facts.direct.get(name) for name in remote):
        ends = sum(remote.values())
        text = f"none of {ends} channel ends between nodes goes by GPUDirect RDMA"
        problems.append((Cause.MISCONFIGURED, text))
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
