"""Judge of the rates between nodes (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence, UndeliveredError
from smoke_training.evidence.links import Broken, Cell, PairsSkipped, Tournament
from smoke_training.judges.common import finite, next_step, node_name
from smoke_training.judges.network import wires
from smoke_training.model import Cause, Check, Culprit, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics.links import ALONE_AT_MOST, ZONE, Blame

HALF = (0.40, 0.60)  # of the cell's reference: a link that fell back to half its rate
REMEDIES = {
    "stack": "Compare the declared rate with the machine type's, then check the placement of the nodes.",
    "node": "Take {node} out, or check its cable, port and negotiated speed; then run again.",
    "link": "Check the path between {node}; another placement of the nodes separates path from node.",
}


def links(plan: Plan, found: Evidence) -> Check:
    """Every pair of nodes exchanges data at the declared rate, or as fast as its peers, both ways."""
    skipped = found.of(PairsSkipped)
    if skipped is not None:
        return without_pairs(skipped)
    met = tournament(found)
    if met.broken:
        return _broken(found, met.broken)
    seen = wires.assess(plan, met.nodes, met.cells, met.backend)
    culprits = _culprits(found, met, seen) if seen.verdict is Verdict.FAIL else ()
    reported_only, text = met.backend == "nccl", _message(met, seen, culprits)
    return Check(
        status=seen.verdict,
        required=not reported_only,
        measured=_rates(met, seen),
        expected=seen.reference.expected,
        zone=ZONE,
        noise={"starved_share": starved(met.cells)},
        culprits=culprits,
        message=f"{text}; {wires.UNCALIBRATED}" if reported_only else text,
        next_action=next_step(seen.verdict, culprits, REMEDIES),
    )


def without_pairs(skipped: PairsSkipped) -> Check:
    """Handle a run without pairs: not applicable, or failed connections, which are an error."""
    failed = skipped.reason.startswith("could not connect")
    return Check(
        status=Verdict.ERROR if failed else Verdict.SKIPPED,
        required=failed,
        message=f"Pairs of nodes {skipped.reason}" if failed else f"Not measured: {skipped.reason}.",
        next_action="Read fabric.rails: an interface of the plan may be missing or dead." if failed else None,
    )


def tournament(found: Evidence) -> Tournament:
    """The last tournament of all pairs; UndeliveredError without one."""
    met = [item for item in found.all_of(Tournament) if item.phase == "pairs"]
    if not met:
        raise UndeliveredError("tournament of pairs")
    return met[-1]


def broken_culprits(found: Evidence, broken: Sequence[Broken], interface: str | None) -> tuple[Culprit, ...]:
    """Return the links whose transfers did not complete."""
    cause = Cause.DEAD_RAIL if interface else Cause.SLOW_LINK
    culprits = {}
    for item in broken:
        other = item.receiver if item.sender is None else item.sender
        if other is None or other == item.node:
            continue
        ends = tuple(sorted((item.node, other)))
        text = f"a transfer noticed on node {item.node} broke off: {item.message}"
        name = f"{ends[0]}-{ends[1]}"
        culprits[ends] = Culprit("link", name, cause, (text,), node=node_name(item.node, found))
    return tuple(culprits.values())


def _broken(found: Evidence, broken: Sequence[Broken]) -> Check:
    culprits = broken_culprits(found, broken, None)
    return Check(
        status=Verdict.FAIL if culprits else Verdict.ERROR,
        culprits=culprits,
        message=f"{len(broken)} transfers between nodes broke off; first: {broken[0].message}",
        next_action="Check the path between the named nodes: cabling, security groups, MTU.",
    )


def _rates(met: Tournament, seen: wires.Assessment) -> Measured:
    worst, unit = seen.scores[seen.worst], seen.typical_gbit_s
    cells = [
        {
            "sender": pair[0],
            "receiver": pair[1],
            "gbit_s": score.value * unit,
            "ratio": score.value,
            "decides": finite(score.low, score.high),
            "answer": str(score.answer),
            "visits": score.visits,
            "starved_visits": score.starved_visits,
        }
        for pair, score in sorted(seen.scores.items())
    ]
    return Measured(
        value=worst.value * unit,
        unit="Gb/s",
        n=worst.visits,
        ci=finite(worst.ci95[0] * unit, worst.ci95[1] * unit),
        estimator="slowest direction of a pair: 20 % trimmed mean over visits of log ratios to the reference",
        detail={
            "slowest": list(seen.worst),
            "reference_gbit_s": unit,
            "interface": met.interface,
            "message_bytes": met.message_bytes,
            "seconds": met.seconds,
            "cells": cells,
        },
    )


def starved(cells: Sequence[Cell]) -> float | None:
    """Largest mean share of a cell's visits in which an end waited for CPUs."""
    shares = [sum(cell.starved) / len(cell.starved) for cell in cells if cell.starved]
    return max(shares) if shares else None


def _culprits(found: Evidence, met: Tournament, seen: wires.Assessment) -> tuple[Culprit, ...]:
    if not (seen.everything and len(seen.confirmed) > 1):
        return tuple(_accused(found, met, seen, blame) for blame in seen.confirmed)
    ratios = [item.value for item in seen.scores.values()]
    best, cause = max(ratios), slow_cause(sum(ratios) / len(ratios))
    text = f"all {len(ratios)} directions between nodes are slow, the best at {best:.2f}"
    return (Culprit("stack", "fabric", cause, (text,), score=best),)


def _accused(found: Evidence, met: Tournament, seen: wires.Assessment, blame: Blame) -> Culprit:
    worst = seen.scores[wires.worst_cell(blame, seen.scores)]
    over = f" over {met.interface}" if met.interface else ""
    if len(blame.nodes) == 1:
        ways = "sends and receives" if blame.direction == "both" else blame.direction
        others = {node for cell in blame.cells for node in cell} - set(blame.nodes)
        what = f"node {blame.nodes[0]} {ways} slowly with all {len(others)} others{over}"
    else:
        ways = ", ".join(f"{a} to {b}" for a, b in blame.cells)
        what = f"only this pair is slow{over}: {ways}"
    cells = "; ".join(
        f"{a} to {b}: {seen.scores[a, b].value:.2f} of {seen.typical_gbit_s:.3g} Gb/s"
        for a, b in blame.cells[:6]
    )
    alone = "" if len(met.nodes) <= ALONE_AT_MOST else "; confirmed with nothing else on the wire"
    evidence, ci = (what + alone, cells), finite(*worst.ci95)
    return wires.accuse(found, blame.nodes, slow_cause(worst.value), evidence, score=worst.value, ci=ci)


def slow_cause(ratio: float) -> Cause:
    """Classify a slow link: fallen back to half its rate, or slow otherwise."""
    return Cause.HALF_RATE_LINK if HALF[0] <= ratio <= HALF[1] else Cause.SLOW_LINK


def _message(met: Tournament, seen: wires.Assessment, culprits: Sequence[Culprit]) -> str:
    (sender, receiver), worst = seen.worst, seen.scores[seen.worst]
    figure = f"{sender} to {receiver} at {worst.value * seen.typical_gbit_s:.3g} Gb/s"
    wanted = f"{worst.value:.2f} of {seen.typical_gbit_s:.3g} Gb/s"
    if seen.verdict is Verdict.PASS:
        measured, every = len(seen.scores), len(met.nodes) * (len(met.nodes) - 1)
        sample = f", a sample of all {every} among {len(met.nodes)} nodes" if measured < every else ""
        slowest = f"slowest of {measured} directions{sample}: {figure}"
        limit = f"must exceed {ZONE[0]:.2f}"
        if worst.value <= ZONE[0]:
            limit = f"visits reached {ZONE[1]:.2f}, which a slow wire never lets them"
        return f"{slowest} ({wanted}; {limit})"
    if seen.verdict is Verdict.FAIL:
        names = ", ".join(f"{item.kind} {item.id}" for item in culprits)
        return f"{names}: {figure} ({wanted}; below {ZONE[0]:.2f} is slow)"
    if seen.contended:
        names = ", ".join("-".join(map(str, blame.nodes)) for blame in seen.contended)
        return f"{names}: slow while other pairs exchange data, not alone; slowest {figure} ({wanted})"
    low, high = finite(worst.low, worst.high) or (0.0, float("inf"))
    share = starved(met.cells)
    noise = "" if share is None else f"; threads waited for CPUs in up to {share:.0%} of a direction's time"
    return f"undecided: {figure}, interval {low:.2f} .. {high:.2f} of the reference{noise}"
