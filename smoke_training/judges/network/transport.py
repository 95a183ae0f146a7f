"""Judge of the transport: the bytes of known collectives must have crossed the declared adapters (pure).

Every node of an all-reduce has to send at least one whole buffer to the others, whatever the algorithm: each
element either leaves it as its contribution, or arrives from all others and leaves it as the sum. So the
adapters must have sent at least operations x size, and headers only add to that.
"""

import statistics
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import NcclLog, NodeTraffic, Traffic
from smoke_training.evidence.world import World
from smoke_training.judges.common import node_name
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.nccl import transport as rules
from smoke_training.plan import Plan

PROVEN, ABSENT = 0.9, 0.5  # share of the bytes that must have been sent: above it proven, below it elsewhere
DEAD_BALANCE = 0.5  # a node's quietest adapter below half of its median one carries hardly anything


def transport(plan: Plan, found: Evidence) -> Check | None:
    """The training traffic goes over the plan's rails or fabric, by counters and, on nccl, by its log."""
    record = found.of(Traffic)
    nccl = _backend(found) == "nccl"
    if plan.nodes < 2:
        return Check.skipped("All ranks run on one node, so no traffic crosses the fabric.")
    if record is None:
        return None
    if record.nothing_between is not None:
        return Check.skipped(f"Not judged: {record.nothing_between}.")
    required = bool(plan.rails) or (nccl and rules.must_be_proven(plan.fabric))
    if not required:
        return Check.skipped(
            f"The plan names no rails, and {'gloo' if not nccl else 'nccl'} over fabric "
            f'"{plan.fabric}" has no adapters of its own to prove.'
        )
    needed = record.operations * record.size_bytes
    shares = {node.node: _carried(plan, node, nccl) / needed for node in record.nodes}
    problems = [problem for log in found.all_of(NcclLog) for problem in _log(plan, log)] if nccl else []
    if nccl and rules.must_be_proven(plan.fabric) and not found.all_of(NcclLog):
        problems.append("no NCCL log was found, so its choice of network is not proven")
    return _check(plan, found, record, shares, problems)


def _backend(found: Evidence) -> str:
    world = found.of(World)
    return world.ranks[0].backend if world is not None and world.ranks else "unknown"


def _carried(plan: Plan, node: NodeTraffic, nccl: bool) -> int:
    """Bytes that the declared adapters of a node sent: its RDMA ports on accelerators, and its rails."""
    by_rails = sum(node.tx_bytes.get(name, 0) for name in plan.rails)
    by_ports = sum(node.port_tx_bytes.values()) if nccl else 0
    return by_rails + by_ports


def _log(plan: Plan, log: NcclLog) -> list[str]:
    facts = rules.LogFacts(
        networks=log.networks,
        providers=log.providers,
        adapters=log.adapters,
        via=log.via,
        nvls=log.nvls,
        lines=log.lines,
    )
    return [f"node {log.node}: {problem}" for problem in rules.log_problems(plan.fabric, facts)]


def _check(
    plan: Plan, found: Evidence, record: Traffic, shares: Mapping[int, float], problems: Sequence[str]
) -> Check:
    least = min(shares, key=lambda node: shares[node])
    lost = [node for node, share in shares.items() if share < ABSENT]
    fallen = bool(lost or problems)
    dead = [] if fallen else _dead_adapters(plan, found, record)
    status = Verdict.FAIL if fallen or dead else Verdict.PASS
    if not fallen and shares[least] < PROVEN:
        status = Verdict.INCONCLUSIVE
    culprits = (_fallback(plan, record, shares, problems),) if fallen else tuple(dead)
    gbit_s = [
        _carried(plan, node, record.backend == "nccl") * 8 / record.seconds / 1e9 for node in record.nodes
    ]
    return Check(
        status=status,
        measured=Measured(
            value=shares[least],
            unit="of the bytes that must cross",
            n=record.operations,
            estimator="least node: bytes sent by the declared adapters over the bytes that it had to send",
            detail={
                "wire_gbit_s": gbit_s,
                "balance": {str(n.node): balance(_adapters(plan, n)) for n in record.nodes},
                "nodes": [_described(node) for node in record.nodes],
                "phase_gbit_s": [_rates(counts, record.phase_seconds) for counts in record.phase_tx_bytes],
                "retransmit_ratio": {str(node.node): _ratio(node) for node in record.nodes},
                "settings": [
                    f"node {node.node}: {problem}"
                    for node in record.nodes
                    for problem in rules.setting_problems(plan.fabric, node.environment)
                ],
            },
        ),
        expected=Expected(
            value=1.0,
            kind="derived",
            source="an all-reduce sends at least one buffer from every node",
            floor=PROVEN,
        ),
        zone=(ABSENT, PROVEN),
        culprits=culprits if status is Verdict.FAIL else (),
        message=_message(plan, status, record, shares, culprits),
        next_action=_action(status, culprits),
    )


def _adapters(plan: Plan, node: NodeTraffic) -> dict[str, int]:
    return dict(node.port_tx_bytes) or {name: node.tx_bytes.get(name, 0) for name in plan.rails}


def balance(sent: Mapping[str, int]) -> float | None:
    """Bytes of the quietest adapter over those of the median one; None for fewer than two adapters."""
    middle = statistics.median(sent.values()) if len(sent) > 1 else 0
    return min(sent.values()) / middle if middle else None


def _dead_adapters(plan: Plan, found: Evidence, record: Traffic) -> list[Culprit]:
    """Adapters that carried hardly anything while their siblings worked (nccl; untested on hardware).

    gloo uses the interfaces it is given, in uneven shares, so its balance is only reported.
    """
    if record.backend != "nccl":
        return []
    accused = []
    for node in record.nodes:
        sent = _adapters(plan, node)
        middle = statistics.median(sent.values()) if len(sent) > 2 else 0
        accused += [
            Culprit(
                kind="nic",
                id=f"{node.node}/{name}",
                node=node_name(node.node, found),
                score=count / middle,
                cause=Cause.DEAD_RAIL,
                evidence=(f"{name} sent {count} bytes, the median adapter of its node {middle:.0f}",),
            )
            for name, count in sorted(sent.items())
            if middle and count < DEAD_BALANCE * middle
        ]
    return accused


def _fallback(plan: Plan, record: Traffic, shares: Mapping[int, float], problems: Sequence[str]) -> Culprit:
    needed = record.operations * record.size_bytes
    evidence = []
    for node in record.nodes:
        share = shares[node.node]
        if share < ABSENT:
            instead = ", ".join(f"{name} sent {count}" for name, count in _elsewhere(plan, node, needed))
            adapters = ", ".join(plan.rails) or "the RDMA adapters"
            evidence.append(
                f"node {node.node}: {adapters} sent {share * needed:.0f} of at least {needed} bytes; "
                f"{instead or 'no other interface sent as much'}"
            )
    evidence += list(problems)
    evidence += settings(plan, record.nodes)
    return Culprit(
        kind="stack",
        id="transport",
        score=min(shares.values()),
        cause=Cause.TCP_FALLBACK,
        evidence=tuple(evidence[:12]),
    )


def _elsewhere(plan: Plan, node: NodeTraffic, needed: int) -> list[tuple[str, int]]:
    """Interfaces outside the plan's rails that sent a good part of the bytes, most first."""
    others = [(name, count) for name, count in node.tx_bytes.items() if name not in plan.rails]
    return sorted((item for item in others if item[1] > 0.1 * needed), key=lambda item: -item[1])


def settings(plan: Plan, nodes: Sequence[NodeTraffic]) -> list[str]:
    """Settings that explain a fallback: rules of the fabric, gloo's interfaces, differences between nodes."""
    found = []
    for node in nodes:
        problems = rules.setting_problems(plan.fabric, node.environment)
        found += [f"node {node.node}: {problem}" for problem in problems]
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


def _described(node: NodeTraffic) -> dict[str, object]:
    return {
        "node": node.node,
        "tx_bytes": dict(node.tx_bytes),
        "rx_bytes": dict(node.rx_bytes),
        "port_tx_bytes": dict(node.port_tx_bytes),
        "environment": dict(node.environment),
    }


def _rates(counts: Mapping[str, int], seconds: float) -> dict[str, float]:
    return {name: count * 8 / seconds / 1e9 for name, count in counts.items() if count and seconds > 0}


def _ratio(node: NodeTraffic) -> float | None:
    if not node.segments or node.retransmitted is None:
        return None
    return (node.retransmitted - (node.spurious or 0)) / node.segments


def _message(
    plan: Plan, status: Verdict, record: Traffic, shares: Mapping[int, float], culprits: Sequence[Culprit]
) -> str:
    least = min(shares, key=lambda node: shares[node])
    adapters = ", ".join(plan.rails) or "the fabric's adapters"
    figure = f"node {least} sent {shares[least]:.2f} of the least possible bytes over {adapters}"
    if status is Verdict.FAIL:
        return f"{figure}: {culprits[0].cause}, {culprits[0].evidence[0]}"
    if status is Verdict.INCONCLUSIVE:
        return f"{figure}, too much for another path and too little for this one"
    return f"{figure} during {record.operations} all-reduces of {record.size_bytes} bytes"


def _action(status: Verdict, culprits: Sequence[Culprit]) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is Verdict.INCONCLUSIVE or not culprits:
        return "Run again, and read the bytes per interface in this check's detail."
    if culprits[0].kind == "nic":
        return f"Check adapter {culprits[0].id}; if it stays quiet, replace the node."
    rule = next((words for words in culprits[0].evidence if "must be" in words), None)
    if rule is not None:
        return f"Correct the image or chart: {rule.partition(': ')[2]}."
    return "Run with NCCL_DEBUG=INFO and install or repair the fabric's plugin."
