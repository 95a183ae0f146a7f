"""Judge of lost packets: retransmissions of senders, attributed by receiver (pure)."""

from collections.abc import Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import Cell, PairsSkipped, Tournament
from smoke_training.judges.common import next_step
from smoke_training.judges.network import wires
from smoke_training.judges.network.links import starved, tournament, without_pairs
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import poisson
from smoke_training.statistics.estimators import Z_REPORTED
from smoke_training.statistics.links import Blame

REMEDIES = {
    "stack": "Look for drops in the switches' counters and for a policer in front of the nodes.",
    "": "Check cable, port and drop counters of {node}, then run the validation again.",
}
WHY = {
    "receives": "every sender to it has to send packets again",
    "sends": "it has to send packets again to every receiver",
    "both": "packets are sent again in both directions, with every peer",
}
LIMITS = f"clean is below {poisson.CLEAN:.1%}, lossy above {poisson.LOSSY:.1%}"
BEHIND = "its interface received every byte that was sent to it: packets are lost behind it"


def loss(_plan: Plan, found: Evidence) -> Check:
    """Retransmissions per segment stay below the floor, for every node as sender and as receiver."""
    skipped = found.of(PairsSkipped)
    if skipped is not None:
        return without_pairs(skipped)
    met = tournament(found)
    lost = wires.losses(met.cells)
    if lost is None:
        return _uncounted(met.counter, bool(met.cells))
    culprits = _culprits(found, met, lost) if lost.verdict is Verdict.FAIL else ()
    # Adapters with their own protocol are only reported, and NCCL's sockets, of 25 Gb/s and more: the limits
    # come from gloo over shaped wires.
    reported_only = met.counter != "tcp" or met.backend == "nccl"
    worst = max((*lost.lines.values(), lost.total), key=lambda rate: rate.estimate)
    return Check(
        status=lost.verdict,
        required=not reported_only,
        measured=_measured(lost, worst),
        expected=Expected.exactly(0.0, "a clean wire loses nothing", poisson.LOSSY),
        zone=(poisson.CLEAN, poisson.LOSSY),
        noise={"starved_share": starved(met.cells)},
        culprits=culprits,
        message=_message(lost, worst, culprits) + (f"; {wires.UNCALIBRATED}" if reported_only else ""),
        next_action=next_step(lost.verdict, culprits, REMEDIES),
    )


def _uncounted(counter: str, measured: bool) -> Check:
    """Report that retransmissions are not counted; this never counts as a clean wire."""
    return Check(
        status=Verdict.SKIPPED if measured else Verdict.ERROR,
        required=not measured,
        message=f"Not judged: this transport counts no retransmitted packets (counter: {counter})."
        if measured
        else "No transfer between nodes came to an end, so no losses could be counted.",
    )


def _measured(lost: wires.Losses, worst: poisson.Rate) -> Measured:
    events, per_segment = worst.events / worst.dispersion, worst.dispersion / worst.exposure
    low, high = (bound * per_segment for bound in poisson.bounds(events, Z_REPORTED))
    return Measured(
        value=worst.estimate,
        unit="retransmitted per sent segment",
        n=worst.exposure,
        ci=(low, high),
        estimator="worst node and direction: needed retransmissions over segments, without the fifth of the "
        "visits that had most, quasi-Poisson interval",
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


def _culprits(found: Evidence, met: Tournament, lost: wires.Losses) -> tuple[Culprit, ...]:
    if lost.attribution.accused:
        return tuple(_lossy(found, met, lost, blame) for blame in lost.attribution.accused)
    total = lost.total.estimate
    text = f"{total:.3%} of all segments had to be sent again; no single node or link stands out"
    return (Culprit("stack", "fabric", Cause.LOSS, (text,), score=total),)


def _lossy(found: Evidence, met: Tournament, lost: wires.Losses, blame: Blame) -> Culprit:
    """Retransmissions are counted by senders: a column of them accuses the receiver, a row the sender.

    A single bad pair may be either end or the path between. There the bytes decide: packets that the
    receiver's interface counted were lost behind it.
    """
    rate = max((lost.cells[pair] for pair in blame.cells), key=lambda rate: rate.estimate)
    figures = "; ".join(
        f"{a} to {b}: {lost.cells[a, b].events} of {lost.cells[a, b].exposure} segments"
        for a, b in blame.cells[:6]
    )
    nodes, why = blame.nodes, WHY.get(blame.direction, "")
    if len(nodes) > 1:
        why = "packets of this pair are lost on the way"
        cells = [cell for cell in met.cells if (cell.sender, cell.receiver) in blame.cells]
        behind = {c.receiver for c in cells if _arrived(c, lost.cells[c.sender, c.receiver])}
        if len(behind) == 1:
            nodes, why = (behind.pop(),), BEHIND
    evidence, ci = (why, figures), (rate.low, rate.high)
    return wires.accuse(
        found, nodes, Cause.LOSS, evidence, interface=met.interface, score=rate.estimate, ci=ci
    )


def _arrived(cell: Cell, rate: poisson.Rate) -> bool:
    """Report whether lost packets had reached the receiver's interface; False without byte counts.

    Packets that never arrived are missing from what the interface counted, in the share that was lost.
    """
    sent, received = sum(cell.sent_bytes or ()), sum(cell.received_bytes or ())
    return bool(sent and received) and abs(1 - received / sent) < rate.estimate / 3


def _message(lost: wires.Losses, worst: poisson.Rate, culprits: Sequence[Culprit]) -> str:
    bounds = f"{worst.low:.3%} .. {worst.high:.3%}"
    figure = f"{worst.events} of {worst.exposure} segments sent again, {worst.estimate:.3%} ({bounds})"
    if lost.verdict is Verdict.FAIL:
        return f"{', '.join(f'{item.kind} {item.id}' for item in culprits)}: {figure}; {LIMITS}"
    if lost.verdict is Verdict.PASS:
        return f"worst node: {figure}; {LIMITS}"
    return f"undecided: {figure}; {LIMITS}"
