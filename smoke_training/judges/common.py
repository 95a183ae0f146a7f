"""Helpers of all judges (pure)."""

import math
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.world import JoinedNodes, NodeFacts, RankFacts, World
from smoke_training.model import Culprit, Verdict

RUN_AGAIN = "Run again when the machines are quieter."


def host_name(node: int | None, found: Evidence) -> str | None:
    """Return a node's host name, from its ranks or its handshake; None when unknown, and for no node."""
    world, nodes = found.of(World), found.of(JoinedNodes)
    known: list[RankFacts | NodeFacts] = [*(world.ranks if world else ()), *(nodes.joined if nodes else ())]
    return next((facts.host for facts in known if facts.node == node), None)


def node_name(node: int, found: Evidence) -> str:
    """Return the host name of a node, or its number when unknown."""
    return host_name(node, found) or f"node {node}"


def host_of(rank: int, cluster: World) -> str:
    """Host name of a rank."""
    return next(facts.host for facts in cluster.ranks if facts.rank == rank)


def against_floor(low: float, high: float, floor: float) -> Verdict:
    """PASS when the whole interval reaches the floor, FAIL when none of it does, else INCONCLUSIVE."""
    return Verdict.PASS if low >= floor else Verdict.FAIL if high < floor else Verdict.INCONCLUSIVE


def finite(low: float, high: float) -> tuple[float, float] | None:
    """An interval for readers; None when it is unbounded."""
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def next_step(
    status: Verdict, culprits: Sequence[Culprit], remedies: Mapping[str, str], undecided: str = RUN_AGAIN
) -> str | None:
    """Return the action for a status; after a fault, the remedy for the first culprit's kind or cause.

    `remedies` may contain `{id}` and `{node}` of that culprit; the entry "" is for all others.
    """
    if status in (Verdict.PASS, Verdict.SKIPPED):
        return None
    if status is not Verdict.FAIL or not culprits:
        return undecided
    first = culprits[0]
    text = remedies.get(first.kind) or remedies.get(first.cause) or remedies[""]
    return text.format(id=first.id, node=first.node)
