"""Judge of the transport: the bytes of known collectives must have crossed the declared adapters (pure).

Every node of an all-reduce has to send at least one whole buffer, whatever the algorithm: each element leaves
it as its contribution or as the sum. So the adapters must have sent at least operations x size.

On accelerators the declared adapters are those that NCCL's log names (untested on hardware): a host has
others for storage and management, which are idle meanwhile. Their number and GPUDirect RDMA have to be those
of the machine type, where the tables know them. GPUDirect-TCPX sends by network interfaces that a setting
names. Where no counter of the fabric is visible (GPUDirect-TCPXO, NVLink, interfaces outside of the pod),
NCCL's log proves it, unless another interface sent the bytes. Without either nothing is proven.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import NcclLog, NodeTraffic, Traffic
from smoke_training.expected import lookup
from smoke_training.expected.lookup import NoFigure
from smoke_training.expected.tables import shipped
from smoke_training.fabric import Fabric
from smoke_training.judges.common import next_step
from smoke_training.judges.network import wires
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.nccl import transport as rules
from smoke_training.plan import Plan

PROVEN, ABSENT = 0.9, 0.5  # share of the bytes that must have been sent: above it proven, below it elsewhere
DEAD_BALANCE = 0.5  # a node's quietest adapter below half of its median one carries hardly anything
SHOWN = ("node", "tx_bytes", "rx_bytes", "port_tx_bytes", "environment")
REMEDIES = {
    "nic": "Check adapter {id}; if it stays quiet, replace the node.",
    Cause.DEAD_RAIL: "Compare the adapters of node {node} with another node's (lspci, /sys/class/infiniband, "
    "devices that its pod was given); replace the node if they are gone.",
    Cause.MISCONFIGURED: "Restore GPUDirect RDMA on node {node}: nvidia-peermem or DMA-BUF in its driver and "
    "kernel, no NCCL_NET_GDR_LEVEL or NCCL_NET_GDR_DISABLE that forbids it.",
    "": "Install or repair the fabric's plugin in the image; NCCL's log, nccl-*.log in the nodes' scratch "
    "folders, has its search for the fabric.",
}


def transport(plan: Plan, found: Evidence) -> Check:
    """The training traffic goes over the plan's rails or fabric, by counters and, on nccl, by its log."""
    if plan.nodes < 2:
        return Check.skipped("All ranks run on one node, so no traffic crosses the fabric.")
    record = found.need(Traffic)
    if record.nothing_between is not None:
        return Check.skipped(f"Not judged: {record.nothing_between}.")
    logged = record.backend == "nccl" and rules.must_be_proven(plan.fabric)
    if not (plan.rails or logged):
        return Check.skipped(
            f'The plan names no rails, and {record.backend} over fabric "{plan.fabric}" has no adapters of '
            "its own to prove."
        )
    logs = {log.node: log for log in found.all_of(NcclLog)} if record.backend == "nccl" else {}
    message = _log_findings(plan, found, logs)
    silent = [node.node for node in record.nodes if node.node not in logs] if logged else []
    message.doubts.extend(
        f"node {node}: no NCCL log was found, so its choice of network is not proven" for node in silent
    )
    message.doubts.extend(
        f"node {node.node}: NCCL_COLLNET_ENABLE is 1, but its log has no CollNet: SHARP is not in use"
        for node in record.nodes
        if plan.fabric is Fabric.INFINIBAND  # elsewhere the setting is copied, and without effect
        and node.environment.get("NCCL_COLLNET_ENABLE") == "1"
        and node.node in logs
        and not logs[node.node].collnet
    )
    return _check(plan, found, record, logs, message)


@dataclass(frozen=True)
class _LogFindings:
    """Other networks that NCCL's logs prove, nodes that lack something, and the doubts that they leave."""

    problems: list[str]
    culprits: list[Culprit]
    doubts: list[str]


def _log_findings(plan: Plan, found: Evidence, logs: Mapping[int, NcclLog]) -> _LogFindings:
    """Check every node's network, number of adapters and GPUDirect RDMA against its machine type."""
    machine = lookup.find_machine(shipped(), plan.instance_type, plan.fabric)
    adapters, direct = None, False
    if not isinstance(machine, NoFigure):
        adapters, direct = machine.nics, machine.gpudirect is not None
    problems, culprits, doubts = list[str](), list[Culprit](), list[str]()
    for node, log in logs.items():
        wrong = rules.log_problems(plan.fabric, log)
        problems += [f"node {node}: {text}" for text in wrong]
        # Over another network the rest of the log is not about this fabric.
        lacks = [] if wrong else rules.adapter_problems(plan.fabric, log, adapters, direct=direct)
        culprits += [wires.accuse(found, (node,), cause, (text,)) for cause, text in lacks]
        open_ = rules.adapter_doubts(plan.fabric, log, adapters, direct=direct)
        doubts += [f"node {node}: {text}" for text in open_]
    return _LogFindings(problems, culprits, doubts)


def _check(
    plan: Plan, found: Evidence, record: Traffic, logs: Mapping[int, NcclLog], message: _LogFindings
) -> Check:
    needed = record.operations * record.size_bytes
    adapters = {
        node.node: _adapters(plan, record.backend, node, logs.get(node.node)) for node in record.nodes
    }
    carried = {node: sum(sent.values()) for node, sent in adapters.items()}
    unseen = record.backend == "nccl" and not (plan.rails or any(adapters.values()))
    sockets = {n.node: sum(b for name, b in n.tx_bytes.items() if name != "lo") for n in record.nodes}
    shares = {n: max(0.0, 1 - sockets[n] / needed) if unseen else carried[n] / needed for n in carried}
    least, doubts = min(shares.values()), list(message.doubts)
    if unseen and rules.interfaces(plan.fabric, {}, ()) is None and not rules.invisible(plan.fabric):
        doubts.append("no counter of an RDMA port is visible on any node")
    if least < ABSENT or message.problems:
        status, culprits = Verdict.FAIL, [_fallback(plan, record, shares, message.problems)]
    else:
        dead, quiet = _quiet_adapters(found, record, adapters, logs)
        doubts += quiet
        culprits = message.culprits + (dead if least >= PROVEN else [])
        open_ = doubts or least < PROVEN
        status = Verdict.FAIL if culprits else Verdict.INCONCLUSIVE if open_ else Verdict.PASS
    reasons = [f"{item.cause}, {item.evidence[0]}" for item in culprits[:1]]
    return Check(
        status=status,
        measured=Measured(
            value=least,
            unit="of the bytes that must cross",
            n=record.operations,
            estimator="least node: bytes that no network interface sent, over the bytes that it had to send"
            if unseen
            else "least node: bytes sent by the declared adapters over the bytes that it had to send",
            detail={
                "wire_gbit_s": [count * 8 / record.seconds / 1e9 for count in carried.values()],
                "balance": {str(node): balance(sent) for node, sent in adapters.items()},
                "adapters": {str(node): sorted(sent) for node, sent in adapters.items()},
                "doubts": doubts,
                "nodes": [{name: getattr(node, name) for name in SHOWN} for node in record.nodes],
                "phase_gbit_s": [
                    {name: count * 8 / record.phase_seconds / 1e9 for name, count in counts.items() if count}
                    for counts in record.phase_tx_bytes
                    if record.phase_seconds > 0
                ],
                "retransmit_ratio": {str(node.node): _ratio(node) for node in record.nodes},
                "settings": _against_rules(plan, record.nodes),
            },
        ),
        expected=Expected(
            value=1.0,
            kind="derived",
            source="an all-reduce sends at least one buffer from every node",
            floor=PROVEN,
        ),
        zone=(ABSENT, PROVEN),
        culprits=tuple(culprits),
        message=_message(plan, status, record, shares, reasons or doubts),
        next_action=_action(status, culprits),
    )


def _adapters(plan: Plan, backend: str, node: NodeTraffic, log: NcclLog | None) -> dict[str, int]:
    """Return bytes sent by a node's declared adapters: those of the fabric in NCCL's log, and the rails."""
    if backend == "nccl" and rules.invisible(plan.fabric):
        return {}
    sent = {name: node.tx_bytes.get(name, 0) for name in plan.rails}
    if log is not None:
        own = rules.interfaces(plan.fabric, node.environment, node.tx_bytes)
        if own is not None:
            return sent | {name: node.tx_bytes[name] for name in own}
        # A port that the log names was active when NCCL started: one that is inactive now has failed.
        ports = {k: v for k, v in node.port_tx_bytes.items() if k in log.ports or k not in node.inactive}
        sent |= rules.adapters_used(plan.fabric, log, ports) if ports else {}
    elif backend == "nccl" and not plan.rails:
        own = rules.interfaces(plan.fabric, node.environment, node.tx_bytes)
        return {name: node.tx_bytes[name] for name in own} if own is not None else dict(node.port_tx_bytes)
    return sent


def balance(sent: Mapping[str, int]) -> float | None:
    """Return the bytes of the quietest adapter over the median one's; None for fewer than two."""
    middle = statistics.median(sent.values()) if len(sent) > 1 else 0
    return min(sent.values()) / middle if middle else None


Adapters = Mapping[int, Mapping[str, int]]
"""Bytes sent, [node][adapter]."""


def _undecided(record: Traffic, logs: Mapping[int, NcclLog], node: int, adapter: str) -> bool:
    """Report whether a quiet port may serve storage: NCCL lists its ports, but not which its channels use.

    A port that it named and that is inactive by now has failed.
    """
    log = logs.get(node)
    if log is None or any(adapter in item.inactive for item in record.nodes if item.node == node):
        return log is None
    return bool(log.ports) and not log.used


def _quiet_adapters(
    found: Evidence, record: Traffic, adapters: Adapters, logs: Mapping[int, NcclLog]
) -> tuple[list[Culprit], list[str]]:
    """Accuse adapters that sent hardly anything while the others of their node worked (untested on hardware).

    Those that may serve storage are doubts. gloo uses the interfaces it is given, in uneven shares, so its
    balance is only reported.
    """
    culprits, doubts = list[Culprit](), list[str]()
    for node, sent in adapters.items() if record.backend == "nccl" else ():
        middle = statistics.median(sent.values()) if len(sent) > 2 else 0
        for name, count in sorted(sent.items()):
            text = f"{name} sent {count} bytes, the median adapter of its node {middle:.0f}"
            if count >= DEAD_BALANCE * middle:
                continue
            if _undecided(record, logs, node, name):
                ports = "(name the fabric's ports in NCCL_IB_HCA)"
                doubts.append(f"node {node}: {text}: dead, or not of the fabric {ports}")
            else:
                share, dead = count / middle, Cause.DEAD_RAIL
                culprits.append(wires.accuse(found, (node,), dead, (text,), interface=name, score=share))
    return culprits, doubts


def _fallback(plan: Plan, record: Traffic, shares: Mapping[int, float], problems: Sequence[str]) -> Culprit:
    needed = record.operations * record.size_bytes
    evidence = []
    for node in record.nodes:
        share = shares[node.node]
        if share < ABSENT:
            others = [item for item in node.tx_bytes.items() if item[0] not in plan.rails]
            large = sorted((item for item in others if item[1] > 0.1 * needed), key=lambda item: -item[1])
            instead = ", ".join(f"{name} sent {count}" for name, count in large)
            adapters = ", ".join(plan.rails) or "the fabric's adapters"
            evidence.append(
                f"node {node.node}: {adapters} sent {share * needed:.0f} of at least {needed} bytes; "
                f"{instead or 'no other interface sent as much'}"
            )
    evidence += list(problems)
    evidence += _settings(plan, record.nodes)
    least = min(shares.values())
    return Culprit("stack", "transport", Cause.TCP_FALLBACK, tuple(evidence[:12]), score=least)


def _against_rules(plan: Plan, nodes: Sequence[NodeTraffic]) -> list[str]:
    return [
        f"node {node.node}: {problem}"
        for node in nodes
        for problem in rules.setting_problems(plan.fabric, node.environment)
    ]


def _settings(plan: Plan, nodes: Sequence[NodeTraffic]) -> list[str]:
    """Return settings that explain a fallback: the fabric's rules, gloo's interfaces, differing nodes."""
    found = _against_rules(plan, nodes)
    for node in nodes:
        chosen = node.environment.get("GLOO_SOCKET_IFNAME")
        outside = [name for name in (chosen or "").split(",") if name and name not in plan.rails]
        if plan.rails and outside:
            found.append(
                f'node {node.node}: GLOO_SOCKET_IFNAME: got "{chosen}"; must be "{",".join(plan.rails)}"'
            )
        elif plan.rails and chosen is None:
            found.append(f"node {node.node}: GLOO_SOCKET_IFNAME: not set; must be {','.join(plan.rails)}")
    for node in nodes[1:]:
        odd = rules.differences(nodes[0].environment, node.environment)
        found += [f"nodes {nodes[0].node} and {node.node} differ: {difference}" for difference in odd]
    return found


def _ratio(node: NodeTraffic) -> float | None:
    if not node.segments or node.retransmitted is None:
        return None
    return (node.retransmitted - (node.spurious or 0)) / node.segments


def _message(
    plan: Plan, status: Verdict, record: Traffic, shares: Mapping[int, float], reasons: Sequence[str]
) -> str:
    least = min(shares, key=lambda node: shares[node])
    adapters = ", ".join(plan.rails) or "the fabric's adapters"
    figure = f"node {least} sent {shares[least]:.2f} of the least possible bytes over {adapters}"
    if status is Verdict.FAIL:
        return f"{figure}: {reasons[0]}"
    if status is Verdict.INCONCLUSIVE and shares[least] < PROVEN:
        return f"{figure}, inconclusive: more than with another path, less than with this one"
    if status is Verdict.INCONCLUSIVE:
        return f"{figure}, but {'; '.join(reasons[:4])}"
    return f"{figure} during {record.operations} all-reduces of {record.size_bytes} bytes"


def _action(status: Verdict, culprits: Sequence[Culprit]) -> str | None:
    text = [text for culprit in culprits for text in culprit.evidence if "must be" in text]
    if text:
        return f"Correct the image or chart: {text[0].partition(': ')[2]}."
    undecided = "Run again, and read the bytes per interface in this check's detail."
    return next_step(status, culprits, REMEDIES, undecided)
