"""Judges of the participants: nodes, devices and ranks (pure)."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import JoinedNodes, LauncherPreflight, NodeFacts, RankFacts, World
from smoke_training.fabric import Fabric
from smoke_training.judges.common import next_step
from smoke_training.model import PLAN, Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan

# Operational states of a link that carries nothing (RFC 2863; "unknown" and "dormant" do not say so).
DOWN = frozenset({"down", "lowerlayerdown", "notpresent"})
# Set per node by design, so that a difference is normal.
PER_NODE_VARIABLES = frozenset({"NCCL_HOSTID", "NCCL_TOPO_FILE", "NCCL_DEBUG_FILE"})
# Adapters of these register memory, which pins it; the kernel refuses what exceeds the process's limit.
LOCKING_FABRICS = frozenset({Fabric.EFA, Fabric.INFINIBAND, Fabric.RDMA})
DEFAULT_LOCK_BYTES = 8 << 20  # Linux's own limit (include/uapi/linux/resource.h, MLOCK_LIMIT): not raised
Facts = TypeVar("Facts", NodeFacts, RankFacts)
LOCK_SOURCE = "aws/aws-ofi-nccl#803: containers over EFA start with memlock=-1"

REMEDIES = {
    Cause.NEVER_JOINED: "Look at the missing node's pod: is it started, does it reach node 0?",
    Cause.WRONG_WORLD_SIZE: "Start as many launchers as the plan has nodes, all with the same plan.",
    Cause.DEAD_RAIL: "Check that the node's interface is attached and its driver loaded.",
    "": "Give every node the same image, machine type and environment.",
}


STARTING = (
    "See what the pod waits for (kubectl describe pod): an image of 14 GB takes about 10 minutes. Pull "
    "it before, or raise the time limit: half of it is the time to join."
)


def devices(plan: Plan, found: Evidence) -> Check:
    """Check for as many GPUs as planned on every node, unless the environment asks for CPU."""
    own, hello = found.need(LauncherPreflight), found.of(JoinedNodes)
    others = hello.joined if hello else ()
    seen = {facts.node: (facts.gpus, facts.device, facts.device_forced) for facts in others}
    seen[0] = (own.devices_found, own.device, own.device_forced)
    hosts = {facts.node: facts.host for facts in others}
    wanted = plan.gpus_per_node
    short = [
        node
        for node, (gpus, device, forced) in sorted(seen.items())
        if gpus < wanted and not (device == "cpu" and forced)
    ]
    shown = short[0] if short else min(seen, key=lambda node: seen[node][0])
    gpus = seen[shown][0]
    where = "this node" if len(seen) == 1 else f"node {shown}" if short else "every node"
    return Check(
        status=Verdict.FAIL if short else Verdict.PASS,
        measured=Measured(value=float(gpus), unit="GPUs", n=len(seen), estimator="fewest of a node"),
        expected=Expected(value=float(wanted), kind="declared", source=PLAN),
        message=f"{gpus} GPUs are visible on {where}, the plan has {wanted}",
        culprits=tuple(
            _culprit(node, hosts.get(node), Cause.MISMATCH, f"{seen[node][0]} of {wanted} GPUs")
            for node in short
        ),
        next_action="Check the device plugin and the pod's nvidia.com/gpu request, or set SMOKE_DEVICE=cpu."
        if short
        else None,
    )


def nodes(plan: Plan, found: Evidence) -> Check:
    """Check that every node joined, with equal plan, ranks, code, software, driver, GPUs, variables."""
    hello = found.need(JoinedNodes)
    culprits = tuple(_faults(plan, hello))
    late = [
        f"node {n} did not join within {hello.waited_s:.0f} s; its pod has an address" for n in hello.starting
    ]
    status = Verdict.FAIL if culprits else Verdict.INCONCLUSIVE if late else Verdict.PASS
    met = f"{hello.wanted} nodes joined within {hello.waited_s:.1f} s, all alike"
    fine = "a single node" if hello.wanted == 1 else met
    return Check(
        status=status,
        measured=Measured(
            value=float(len(hello.joined)),
            unit="nodes",
            n=1,
            estimator="count of launchers that joined",
            detail={
                "waited_s": hello.waited_s,
                "strangers": hello.strangers,
                "missing": sorted(set(range(hello.wanted)) - {facts.node for facts in hello.joined}),
            },
        ),
        expected=Expected(value=float(hello.wanted), kind="declared", source=PLAN),
        message="; ".join(dict.fromkeys([*(culprit.evidence[0] for culprit in culprits), *late])) or fine,
        culprits=culprits,
        next_action=next_step(status, culprits, REMEDIES, STARTING),
    )


def _faults(plan: Plan, hello: JoinedNodes) -> Iterator[Culprit]:
    """Yield every fault, the most basic first; of a node with another plan only that."""
    known = {facts.node: facts.host for facts in hello.joined}
    for node in sorted(set(range(hello.wanted)) - set(known) - set(hello.starting)):
        text = f"node {node} never joined (waited {hello.waited_s:.1f} s)"
        yield _culprit(node, None, Cause.NEVER_JOINED, text)
    wrong = list(_wrong_sizes(hello))
    for node, text in wrong:
        yield _culprit(node, known[node], Cause.WRONG_WORLD_SIZE, text)
    named = {node for node, _ in wrong}
    alike = [facts for facts in hello.joined if facts.node not in named]
    for node, text in _skew(alike):
        yield _culprit(node, known[node], Cause.MISMATCH, text)
    for facts in alike:
        states = {nic.name: nic.state for nic in facts.nics}
        for rail in plan.rails:  # ranks would hang on one that is missing or down
            text = f"node {facts.node} has no interface {rail}, which the plan names as a rail"
            if rail in states:
                text = f"{rail} of node {facts.node}, which the plan names as a rail, is {states[rail]}"
            if rail not in states or states[rail] in DOWN:
                yield Culprit("nic", f"{facts.node}/{rail}", Cause.DEAD_RAIL, (text,), node=facts.host)


def _wrong_sizes(hello: JoinedNodes) -> Iterator[tuple[int, str]]:
    counts = Counter(facts.node for facts in hello.joined)
    for node, count in sorted(counts.items()):
        if node >= hello.wanted:
            yield node, f"node {node} joined, the plan has nodes 0 .. {hello.wanted - 1}"
        elif count > 1:
            yield node, f"{count} launchers report to be node {node}"
    whole = [facts for facts in hello.joined if facts.node < hello.wanted and counts[facts.node] == 1]
    sizes = _deviants(whole, lambda facts: (facts.plan_nodes, facts.plan_ranks_per_node))
    for facts, usual in sizes:
        yield facts.node, f"node {facts.node} has a plan for {_size(facts)}, the others for {_size(usual)}"
    same = [facts for facts in whole if facts.node not in {deviant.node for deviant, _ in sizes}]
    for facts, usual in _deviants(same, lambda facts: facts.ranks):
        # A node with fewer devices starts fewer ranks: then the devices are the fault, not the size.
        if facts.gpus == usual.gpus:
            yield (
                facts.node,
                f"node {facts.node} starts {facts.ranks} ranks ({facts.cpus} CPUs, {facts.gpus} GPUs), "
                f"the others {usual.ranks} ({usual.cpus} CPUs, {usual.gpus} GPUs)",
            )


def _size(facts: NodeFacts) -> str:
    number = facts.plan_ranks_per_node
    ranks = "as many ranks as there are devices" if number is None else f"{number} ranks"
    return f"{facts.plan_nodes} nodes of {ranks}"


_ALIKE: Sequence[tuple[str, Callable[[NodeFacts], object]]] = (
    ("plan", lambda facts: facts.plan_sha256[:12]),
    ("code", lambda facts: facts.code_sha256[:12]),
    ("device", lambda facts: facts.device),
    ("number of GPUs", lambda facts: facts.gpus),
    ("GPU driver", lambda facts: facts.driver),
    ("number of RDMA devices", lambda facts: len(facts.rdma)),
    ("torch", lambda facts: facts.torch),
    ("python", lambda facts: facts.python),
)


def _skew(nodes: Sequence[NodeFacts]) -> Iterator[tuple[int, str]]:
    for name, value in _ALIKE:
        for facts, usual in _deviants(nodes, value):
            yield facts.node, f"{name} of node {facts.node} is {value(facts)}, of the others {value(usual)}"
    names = sorted({name for facts in nodes for name in facts.environment} - PER_NODE_VARIABLES)
    for name in names:
        for facts, _ in _deviants(nodes, lambda facts, name=name: facts.environment.get(name)):  # type: ignore[misc]
            state = "has another value" if name in facts.environment else "is not set"
            yield facts.node, f"variable {name} {state} on node {facts.node}"


def _deviants(nodes: Sequence[Facts], value: Callable[[Facts], object]) -> list[tuple[Facts, Facts]]:
    """Return what differs from most, each with one of the others; in a tie node 0's side is right."""
    if not nodes:
        return []
    counts = Counter(value(facts) for facts in nodes)
    first = min(nodes, key=lambda facts: facts.node)
    usual = max(counts, key=lambda item: (counts[item], item == value(first)))
    example = next(facts for facts in nodes if value(facts) == usual)
    return [(facts, example) for facts in nodes if value(facts) != usual]


def _culprit(node: int, host: str | None, cause: Cause, evidence: str) -> Culprit:
    return Culprit("node", str(node), cause, (evidence,), node=host)


def memory_lock(plan: Plan, found: Evidence) -> Check:
    """Check that every process may lock the memory that it registers with RDMA adapters (untested)."""
    hello = found.need(JoinedNodes)
    on_gpus = any(facts.device == "cuda" for facts in hello.joined)
    if not on_gpus or plan.fabric not in LOCKING_FABRICS:
        return Check.skipped("Not judged: this run registers no memory with RDMA adapters.")
    limited = {facts.node: facts for facts in hello.joined if facts.lockable_bytes is not None}
    least = min((facts.lockable_bytes or 0 for facts in limited.values()), default=None)
    short = [facts for facts in limited.values() if (facts.lockable_bytes or 0) <= DEFAULT_LOCK_BYTES]
    status = Verdict.FAIL if short else Verdict.INCONCLUSIVE if limited else Verdict.PASS
    text = "the limit of locked memory (ulimit -l) is {} KiB; it must be unlimited"
    return Check(
        status=status,
        measured=Measured(
            value=least,
            unit="bytes",
            n=len(hello.joined),
            estimator="least of a node",
            reason=None if limited else "unlimited on every node",
        ),
        expected=Expected.unknown("must be unlimited: no source states a sufficient amount", LOCK_SOURCE),
        culprits=tuple(
            _culprit(facts.node, facts.host, Cause.MISMATCH, text.format((facts.lockable_bytes or 0) >> 10))
            for facts in short
        ),
        message="; ".join(
            f"node {node}: {text.format((facts.lockable_bytes or 0) >> 10)}"
            for node, facts in sorted(limited.items())
        )
        or "no node limits the memory that processes may lock",
        next_action="Raise LimitMEMLOCK of the nodes' container runtime to infinity." if limited else None,
    )


def joined(plan: Plan, found: Evidence) -> Check:
    """Check that all ranks joined with the same software."""
    cluster = found.need(World)
    problems = []
    if len(cluster.ranks) != cluster.wanted:
        problems.append(f"{len(cluster.ranks)} ranks joined, {cluster.wanted} wanted")
    for rank, count in Counter(facts.rank for facts in cluster.ranks).items():
        if count > 1:
            problems.append(f"rank {rank} is there {count} times")
    accused = dict[int, Culprit]()
    for name in ("torch", "python", "backend", "device"):
        values = sorted({str(getattr(rank, name)) for rank in cluster.ranks})
        if len(values) > 1:
            problems.append(f"{name} differs between ranks: {', '.join(values)}")
        for odd, usual in _deviants(cluster.ranks, lambda rank, name=name: getattr(rank, name)):  # type: ignore[misc]
            text = f"{name} {getattr(odd, name)!r}, most have {getattr(usual, name)!r}"
            accused.setdefault(odd.node, _culprit(odd.node, odd.host, Cause.MISMATCH, text))
    nodes = {rank.node for rank in cluster.ranks}
    if len(nodes) != plan.nodes:
        problems.append(f"ranks run on {len(nodes)} nodes, the plan has {plan.nodes}")
    return Check(
        status=Verdict.FAIL if problems else Verdict.PASS,
        measured=Measured.count(len(cluster.ranks), "ranks", 1),
        expected=Expected.exactly(float(cluster.wanted), PLAN),
        culprits=tuple(accused.values()),
        message="; ".join(problems) or f"{len(cluster.ranks)} ranks joined on {len(nodes)} nodes, all alike",
        next_action="Give every node the same image and machine type." if problems else None,
    )
