"""Judge of the rates between nodes (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import Broken, Cell, PairsSkipped, Tournament
from smoke_training.judges.common import RUN_AGAIN, finite, node_name
from smoke_training.judges.network import wires
from smoke_training.model import Cause, Check, Culprit, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics.links import ALONE_AT_MOST, ZONE, Blame, Pair, Score

HALF = (0.40, 0.60)  # of what the cell should reach: a link that fell back to half its rate


def links(plan: Plan, found: Evidence) -> Check | None:
    """Every pair of nodes exchanges data at the declared rate, or as fast as its peers, both ways."""
    skipped = found.of(PairsSkipped)
    if skipped is not None:
        return without_pairs(skipped)
    met = tournament(found, "pairs")
    if met is None:
        return None
    if met.broken:
        return _broken(found, met.broken)
    seen = wires.assess(plan, met.nodes, met.cells, met.backend)
    culprits = _link_culprits(found, met, seen)
    return Check(
        status=seen.verdict,
        measured=_rates(met, seen),
        expected=seen.reference.expected,
        zone=ZONE,
        noise={"starved_share": starved(met.cells)},
        culprits=culprits if seen.verdict is Verdict.FAIL else (),
        message=_links_message(met, seen, culprits),
        next_action=_links_action(seen.verdict, culprits),
    )


def without_pairs(skipped: PairsSkipped) -> Check:
    """Nothing lies between nodes, or it could not be connected, which is an error."""
    failed = skipped.reason.startswith("could not connect")
    return Check(
        status=Verdict.ERROR if failed else Verdict.SKIPPED,
        required=failed,
        message=f"Pairs of nodes {skipped.reason}" if failed else f"Not measured: {skipped.reason}.",
        next_action="Read fabric.rails: an interface of the plan may be missing or dead." if failed else None,
    )


def tournament(found: Evidence, phase: str) -> Tournament | None:
    """The last tournament of a phase."""
    return next((item for item in reversed(found.all_of(Tournament)) if item.phase == phase), None)


def broken_culprits(found: Evidence, broken: Sequence[Broken], interface: str | None) -> tuple[Culprit, ...]:
    """The links whose transfers did not come to an end."""
    cause = Cause.DEAD_RAIL if interface else Cause.SLOW_LINK
    culprits = {}
    for item in broken:
        other = item.receiver if item.sender is None else item.sender
        if other is None or other == item.node:
            continue
        ends = tuple(sorted((item.node, other)))
        culprits[ends] = Culprit(
            kind="link",
            id=f"{ends[0]}-{ends[1]}",
            node=node_name(item.node, found),
            cause=cause,
            evidence=(f"a transfer noticed on node {item.node} broke off: {item.message}",),
        )
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
    worst_pair = min(seen.scores, key=lambda pair: seen.scores[pair].ratio)
    worst = seen.scores[worst_pair]
    return Measured(
        value=worst.ratio * seen.typical_gbit_s,
        unit="Gb/s",
        n=worst.visits,
        ci=_scaled(worst, seen.typical_gbit_s),
        estimator="slowest direction of a pair: 20 % trimmed mean over visits of log ratios to the reference",
        detail={
            "slowest": list(worst_pair),
            "reference_gbit_s": seen.typical_gbit_s,
            "interface": met.interface,
            "message_bytes": met.message_bytes,
            "seconds": met.seconds,
            "cells": [_cell(pair, found, seen.typical_gbit_s) for pair, found in sorted(seen.scores.items())],
        },
    )


def _scaled(found: Score, unit: float) -> tuple[float, float] | None:
    return finite(found.ci95[0] * unit, found.ci95[1] * unit)


def _cell(pair: Pair, found: Score, unit: float) -> dict[str, object]:
    bounds = finite(found.low, found.high)
    return {
        "sender": pair[0],
        "receiver": pair[1],
        "gbit_s": found.ratio * unit,
        "ratio": found.ratio,
        "decides": None if bounds is None else list(bounds),
        "answer": str(found.answer),
        "visits": found.visits,
        "starved_visits": found.starved_visits,
    }


def starved(cells: Sequence[Cell]) -> float | None:
    """Largest mean share of a cell's visits in which an end waited for CPUs."""
    shares = [sum(cell.starved) / len(cell.starved) for cell in cells if cell.starved]
    return max(shares) if shares else None


def _link_culprits(found: Evidence, met: Tournament, seen: wires.Assessment) -> tuple[Culprit, ...]:
    if seen.everything and len(seen.confirmed) > 1:
        ratios = [item.ratio for item in seen.scores.values()]
        return (
            Culprit(
                kind="stack",
                id="fabric",
                score=max(ratios),
                cause=slow_cause(sum(ratios) / len(ratios)),
                evidence=(
                    f"all {len(ratios)} directions between nodes are slow, the best at {max(ratios):.2f}",
                ),
            ),
        )
    return tuple(_accused(found, met, seen, blame) for blame in seen.confirmed)


def _accused(found: Evidence, met: Tournament, seen: wires.Assessment, blame: Blame) -> Culprit:
    worst = seen.scores[wires.worst_cell(blame, seen.scores)]
    over = f" over {met.interface}" if met.interface else ""
    if len(blame.nodes) == 1:
        ways = {"both": "sends and receives", "sends": "sends", "receives": "receives"}[blame.direction]
        others = {node for cell in blame.cells for node in cell} - set(blame.nodes)
        what = f"node {blame.nodes[0]} {ways} slowly with all {len(others)} others{over}"
    else:
        ways = ", ".join(f"{a} to {b}" for a, b in blame.cells)
        what = f"only this pair is slow{over}: {ways}"
    cells = "; ".join(
        f"{a} to {b}: {seen.scores[a, b].ratio:.2f} of {seen.typical_gbit_s:.3g} Gb/s"
        for a, b in blame.cells[:6]
    )
    alone = "" if len(met.nodes) <= ALONE_AT_MOST else "; confirmed with nothing else on the wire"
    return Culprit(
        kind="node" if len(blame.nodes) == 1 else "link",
        id="-".join(map(str, blame.nodes)),
        node=", ".join(node_name(node, found) for node in blame.nodes),
        score=worst.ratio,
        ci=finite(*worst.ci95),
        cause=slow_cause(worst.ratio),
        evidence=(what + alone, cells),
    )


def slow_cause(ratio: float) -> Cause:
    """A link that fell back to half its rate, or one that is slow in another way."""
    return Cause.HALF_RATE_LINK if HALF[0] <= ratio <= HALF[1] else Cause.SLOW_LINK


def _links_message(met: Tournament, seen: wires.Assessment, culprits: Sequence[Culprit]) -> str:
    pair = min(seen.scores, key=lambda cell: seen.scores[cell].ratio)
    worst = seen.scores[pair]
    figure = f"{pair[0]} to {pair[1]} at {worst.ratio * seen.typical_gbit_s:.3g} Gb/s"
    wanted = f"{worst.ratio:.2f} of {seen.typical_gbit_s:.3g} Gb/s"
    if seen.verdict is Verdict.PASS:
        return f"slowest of {_directions(met, seen)}: {figure} ({wanted}; must exceed {ZONE[0]:.2f})"
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


def _directions(met: Tournament, seen: wires.Assessment) -> str:
    """How many directions between nodes were measured, and of how many where it was a sample."""
    measured, every = len(seen.scores), len(met.nodes) * (len(met.nodes) - 1)
    if measured < every:
        return f"{measured} directions, a sample of all {every} among {len(met.nodes)} nodes"
    return f"{measured} directions"


def _links_action(status: Verdict, culprits: Sequence[Culprit]) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is not Verdict.FAIL:
        return RUN_AGAIN
    accused = culprits[0]
    if accused.kind == "stack":
        return "Compare the declared rate with the machine type's, then check the placement of the nodes."
    if accused.kind == "node":
        return f"Take {accused.node} out, or check its cable, port and negotiated speed; then run again."
    return f"Check the path between {accused.node}; placing the nodes elsewhere tells path from node."
