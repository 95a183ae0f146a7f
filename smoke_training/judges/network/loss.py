"""Judge of lost packets: retransmissions of senders, attributed by who received (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import Cell, PairsSkipped
from smoke_training.judges.common import RUN_AGAIN, node_name
from smoke_training.judges.network import wires
from smoke_training.judges.network.links import starved, tournament, without_pairs
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import poisson
from smoke_training.statistics.links import Blame, Pair

LOSS_ZONE = (poisson.FLOOR, poisson.TOLERATED)


def loss(_plan: Plan, found: Evidence) -> Check | None:
    """Retransmissions per segment stay below the floor, for every node as sender and as receiver."""
    skipped = found.of(PairsSkipped)
    if skipped is not None:
        return without_pairs(skipped)
    met = tournament(found, "pairs")
    if met is None:
        return None
    lost = wires.losses(met.cells)
    if lost is None:
        return _uncounted(met.counter, bool(met.cells))
    culprits = _loss_culprits(found, met.cells, lost, met.interface)
    worst = max((*lost.lines.values(), lost.total), key=lambda rate: rate.estimate)
    return Check(
        status=lost.verdict,
        measured=_loss_measured(lost, worst),
        expected=Expected.exactly(0.0, "a clean wire loses nothing", poisson.TOLERATED),
        zone=LOSS_ZONE,
        noise={"starved_share": starved(met.cells)},
        culprits=culprits if lost.verdict is Verdict.FAIL else (),
        message=_loss_message(lost, worst, culprits),
        next_action=_loss_action(lost.verdict, culprits),
    )


def _uncounted(counter: str, measured: bool) -> Check:
    """Nothing counts retransmissions here: said, and never taken for a clean wire."""
    return Check(
        status=Verdict.SKIPPED if measured else Verdict.ERROR,
        required=not measured,
        message=f"Not judged: this transport counts no retransmitted packets (counter: {counter})."
        if measured
        else "No transfer between nodes came to an end, so no losses could be counted.",
    )


def _loss_measured(lost: wires.Losses, worst: poisson.Rate) -> Measured:
    reported = tuple(
        bound * worst.dispersion / worst.exposure
        for bound in poisson.bounds(worst.events / worst.dispersion, 1.96)
    )
    return Measured(
        value=worst.estimate,
        unit="retransmitted per sent segment",
        n=worst.exposure,
        ci=(reported[0], reported[1]),
        estimator="worst node and direction: needed retransmissions over segments, quasi-Poisson interval",
        detail={
            "total": lost.total.estimate,
            "nodes": [
                {"node": node, "direction": way, **_figures(rate)}
                for (node, way), rate in sorted(lost.lines.items())
            ],
            "pairs": [
                {"sender": a, "receiver": b, **_figures(rate)} for (a, b), rate in sorted(lost.cells.items())
            ],
        },
    )


def _figures(rate: poisson.Rate) -> dict[str, object]:
    return {
        "rate": rate.estimate,
        "events": rate.events,
        "segments": rate.exposure,
        "decides": [rate.low, rate.high],
        "dispersion": rate.dispersion,
    }


def _loss_culprits(
    found: Evidence, cells: Sequence[Cell], lost: wires.Losses, interface: str | None
) -> tuple[Culprit, ...]:
    by_pair = {(cell.sender, cell.receiver): cell for cell in cells}
    accused = [_lossy(found, by_pair, lost, blame, interface) for blame in lost.attribution.accused]
    if accused or lost.verdict is not Verdict.FAIL:
        return tuple(accused)
    words = (
        f"{lost.total.estimate:.3%} of all segments had to be sent again; no single node or link stands out"
    )
    total = lost.total.estimate
    return (Culprit(kind="stack", id="fabric", score=total, cause=Cause.LOSS, evidence=(words,)),)


def _lossy(
    found: Evidence, cells: dict[Pair, Cell], lost: wires.Losses, blame: Blame, interface: str | None
) -> Culprit:
    """Retransmissions are counted by senders: a column of them accuses the receiver, a row the sender.

    A single bad pair leaves both ends and what is between them. There the bytes tell: what the receiver's
    interface counted did arrive, so it was lost behind that interface.
    """
    worst = max(blame.cells, key=lambda pair: lost.cells[pair].estimate)
    rate = lost.cells[worst]
    figures = "; ".join(
        f"{a} to {b}: {lost.cells[a, b].events} of {lost.cells[a, b].exposure} segments"
        for a, b in blame.cells[:6]
    )
    if len(blame.nodes) == 1:
        why = {
            "receives": "every sender to it has to send packets again",
            "sends": "it has to send packets again to every receiver",
            "both": "packets are sent again in both directions, with every peer",
        }[blame.direction]
        return _lossy_end(found, blame.nodes[0], interface, rate, (why, figures))
    behind = {pair[1] for pair in blame.cells if _arrived(cells[pair], lost.cells[pair])}
    if len(behind) == 1:
        why = "its interface received every byte that was sent to it: packets are lost behind it"
        return _lossy_end(found, behind.pop(), interface, rate, (why, figures))
    return Culprit(
        kind="link",
        id="-".join(map(str, blame.nodes)),
        node=", ".join(node_name(node, found) for node in blame.nodes),
        score=rate.estimate,
        ci=(rate.low, rate.high),
        cause=Cause.LOSS,
        evidence=("packets of this pair are lost on the way", figures),
    )


def _arrived(cell: Cell, rate: poisson.Rate) -> bool:
    """Whether what was lost had reached the receiver's interface."""
    on_the_way = wires.lost_on_the_way(cell, rate.estimate)
    return on_the_way is not None and abs(on_the_way) < 1 / 3


def _lossy_end(
    found: Evidence, node: int, interface: str | None, rate: poisson.Rate, evidence: tuple[str, ...]
) -> Culprit:
    return Culprit(
        kind="nic" if interface else "node",
        id=f"{node}/{interface}" if interface else str(node),
        node=node_name(node, found),
        score=rate.estimate,
        ci=(rate.low, rate.high),
        cause=Cause.LOSS,
        evidence=evidence,
    )


def _loss_message(lost: wires.Losses, worst: poisson.Rate, culprits: Sequence[Culprit]) -> str:
    bounds = f"{worst.low:.3%} .. {worst.high:.3%}"
    figure = f"{worst.events} of {worst.exposure} segments sent again, {worst.estimate:.3%} ({bounds})"
    if lost.verdict is Verdict.FAIL:
        return f"{', '.join(f'{item.kind} {item.id}' for item in culprits)}: {figure}; clean is below 0.05 %"
    if lost.verdict is Verdict.PASS:
        return f"worst node: {figure}, below {poisson.TOLERATED:.1%}"
    return f"undecided: {figure}; clean is below {poisson.TOLERATED:.1%}, lossy above {poisson.FLOOR:.2%}"


def _loss_action(status: Verdict, culprits: Sequence[Culprit]) -> str | None:
    if status is Verdict.PASS:
        return None
    if status is not Verdict.FAIL or not culprits:
        return RUN_AGAIN
    accused = culprits[0]
    if accused.kind == "stack":
        return "Look for drops in the switches' counters and for a policer in front of the nodes."
    return f"Check cable, port and drop counters of {accused.node}, then run the validation again."
