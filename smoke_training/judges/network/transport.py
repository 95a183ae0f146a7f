"""Judge of the transport: the bytes of known collectives must have crossed the declared adapters (pure).

Every node of an all-reduce has to send at least one whole buffer to the others, whatever the algorithm: each
element either leaves it as its contribution, or arrives from all others and leaves it as the sum. So the
adapters must have sent at least operations x size, and headers only add to that.
"""

import statistics
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import NcclLog, NodeTraffic, Traffic
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
    "": "Run with NCCL_DEBUG=INFO and install or repair the fabric's plugin.",
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
    logs = found.all_of(NcclLog) if record.backend == "nccl" else ()
    problems = [f"node {log.node}: {words}" for log in logs for words in rules.log_problems(plan.fabric, log)]
    if logged and not logs:
        problems.append("no NCCL log was found, so its choice of network is not proven")
    return _check(plan, found, record, problems)


def _check(plan: Plan, found: Evidence, record: Traffic, problems: Sequence[str]) -> Check:
    needed = record.operations * record.size_bytes
    carried = {node.node: _carried(plan, node, record.backend) for node in record.nodes}
    shares = {node: count / needed for node, count in carried.items()}
    least = min(shares.values())
    if least < ABSENT or problems:
        status, culprits = Verdict.FAIL, [_fallback(plan, record, shares, problems)]
    else:
        culprits = _dead_adapters(plan, found, record)
        status = Verdict.FAIL if culprits else Verdict.PASS
        if least < PROVEN:
            status, culprits = Verdict.INCONCLUSIVE, []
    return Check(
        status=status,
        measured=Measured(
            value=least,
            unit="of the bytes that must cross",
            n=record.operations,
            estimator="least node: bytes sent by the declared adapters over the bytes that it had to send",
            detail={
                "wire_gbit_s": [count * 8 / record.seconds / 1e9 for count in carried.values()],
                "balance": {str(n.node): balance(_adapters(plan, n)) for n in record.nodes},
                "nodes": [{name: getattr(node, name) for name in SHOWN} for node in record.nodes],
                "phase_gbit_s": [_rates(counts, record.phase_seconds) for counts in record.phase_tx_bytes],
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
        message=_message(plan, status, record, shares, culprits),
        next_action=_action(status, culprits),
    )


def _carried(plan: Plan, node: NodeTraffic, backend: str) -> int:
    """Bytes that the declared adapters of a node sent: its RDMA ports on accelerators, and its rails."""
    by_rails = sum(node.tx_bytes.get(name, 0) for name in plan.rails)
    return by_rails + (sum(node.port_tx_bytes.values()) if backend == "nccl" else 0)


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
        for name, count in sorted(sent.items()):
            if middle and count < DEAD_BALANCE * middle:
                words = (f"{name} sent {count} bytes, the median adapter of its node {middle:.0f}",)
                nodes, cause, score = (node.node,), Cause.DEAD_RAIL, count / middle
                accused.append(wires.accuse(found, nodes, cause, words, interface=name, score=score))
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
    evidence += _settings(plan, record.nodes)
    least = min(shares.values())
    return Culprit("stack", "transport", Cause.TCP_FALLBACK, tuple(evidence[:12]), score=least)


def _elsewhere(plan: Plan, node: NodeTraffic, needed: int) -> list[tuple[str, int]]:
    """Interfaces outside the plan's rails that sent a good part of the bytes, most first."""
    others = [(name, count) for name, count in node.tx_bytes.items() if name not in plan.rails]
    return sorted((item for item in others if item[1] > 0.1 * needed), key=lambda item: -item[1])


def _against_rules(plan: Plan, nodes: Sequence[NodeTraffic]) -> list[str]:
    return [
        f"node {node.node}: {problem}"
        for node in nodes
        for problem in rules.setting_problems(plan.fabric, node.environment)
    ]


def _settings(plan: Plan, nodes: Sequence[NodeTraffic]) -> list[str]:
    """Settings that explain a fallback: rules of the fabric, gloo's interfaces, differences between nodes."""
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
    words = [words for culprit in culprits for words in culprit.evidence if "must be" in words]
    if words:
        return f"Correct the image or chart: {words[0].partition(': ')[2]}."
    undecided = "Run again, and read the bytes per interface in this check's detail."
    return next_step(status, culprits, REMEDIES, undecided)
