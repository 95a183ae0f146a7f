"""Judge of single rails: dead, starved, or as fast as declared (pure)."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import PairsSkipped, Rail, RailEnd, Rails, Tournament
from smoke_training.expected.links import reference
from smoke_training.judges.common import RUN_AGAIN, finite, next_step
from smoke_training.judges.network import wires
from smoke_training.judges.network.links import broken_culprits, slow_cause
from smoke_training.model import Cause, Check, Culprit, Expected, Measured, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics.estimators import Z_ACQUIT, Ratio, decision_z
from smoke_training.statistics.links import ZONE, Blame, CellState, Pair, attribute

ALL_REDUCE_FLOOR = 0.6  # of the reference: gloo's ring does not fill a wire; below it pairs were measured
SHOWN = ("node", "running", "carrier", "operstate", "speed_mbit_s", "carrier_changes", "tx_bytes")
REMEDIES = {
    Cause.DEAD_RAIL: "Check that {id} is attached, has a cable and an address; else replace the node.",
    "": "Check the negotiated speed of {id} and what else uses it; then run again.",
}


def rails(plan: Plan, found: Evidence) -> Check:
    """Every rail is there, reaches every node, and carries what it should."""
    skipped = found.of(PairsSkipped)
    if skipped is not None and not skipped.reason.startswith("could not connect"):
        return Check.skipped(f"Not measured: {skipped.reason}.")
    if plan.nodes < 2 and found.of(Rails) is None:
        return Check.skipped("Not measured: all ranks run on one node.")
    record = found.need(Rails)
    if not record.rails:
        return Check.skipped("The plan names no rails, so there is none to look at by itself.")
    return _by_rank(found, record) if record.backend == "nccl" else _by_interface(plan, found, record)


def _by_interface(plan: Plan, found: Evidence, record: Rails) -> Check:
    """Interfaces against their declared rate, or the best rail; a fault before an error before a question."""
    against, rates = reference(plan, record.backend), wire_rates(record.rails)
    lost = {rail.name: dead(found, rail) for rail in record.rails}
    culprits = [culprit for accused in lost.values() for culprit in accused]
    undecided = []
    for name in slow(rates, against.gbit_s):
        # The pairs phase has looked at the first rail already.
        seen = next((t for t in reversed(found.all_of(Tournament)) if t.interface == name), None)
        more, question = _starved(plan, found, name, seen)
        culprits += more
        wanted = _wanted(rates, against.gbit_s)
        message = f"{name}: all-reduce at {rates[name]:.3g} of {wanted:.3g} Gb/s, {question}"
        undecided += [message] if question else []
    errors = [f"{rail.name}: {rail.error}" for rail in record.rails if rail.error and not lost[rail.name]]
    if culprits:
        status = Verdict.FAIL
        text = [f"{item.kind} {item.id}: {item.cause}, {item.evidence[0]}" for item in culprits[:4]]
    elif errors or undecided:
        status, text = Verdict.ERROR if errors else Verdict.INCONCLUSIVE, errors or undecided
    else:
        figures = ", ".join(f"{name} {rate:.3g} Gb/s" for name, rate in rates.items())
        status = Verdict.PASS
        text = [f"{len(record.rails)} rails reach all nodes: {figures} each way in an all-reduce"]
    return Check(
        status=status,
        measured=Measured(
            value=min(rates.values(), default=None),
            unit="Gb/s",
            n=min((len(rail.seconds) for rail in record.rails if rail.seconds), default=0),
            estimator="slowest rail: wire rate 2(k-1)/k S/t of the median all-reduce over it alone",
            reason=None if rates else "no rail carried an all-reduce",
            detail={"rails": [_described(rail, rates.get(rail.name)) for rail in record.rails]},
        ),
        expected=against.expected,
        zone=ZONE,
        culprits=tuple(culprits),
        message="; ".join(text),
        next_action=next_step(status, culprits, REMEDIES),
    )


def dead(found: Evidence, rail: Rail) -> list[Culprit]:
    """The ends of a rail that are down or never answer; of live ends that do not meet, who explains it."""
    ends = {end.node: end for end in rail.ends}
    down = {node: why for node, end in ends.items() if (why := _down(end)) is not None}
    live = [node for node in ends if node not in down]
    met = {(a, b) for a, b in itertools.permutations(live, 2) if ends[a].reached.get(str(b), False)}
    silent = {
        node: _cut_short(rail, ends, [(a, b) for a, b in itertools.permutations(live, 2) if node in (a, b)])
        or f"it reaches none of {len(ends) - 1} nodes over {rail.name}, and none reaches it"
        for node in live
        if len(live) > 2 and not any(node in pair for pair in met)
    }
    text: dict[tuple[int, ...], str] = {
        (node,): f"{rail.name} of node {node}: {why}" for node, why in sorted((down | silent).items())
    }
    rest = [node for node in live if node not in silent]
    answers = {
        pair: CellState.GOOD if pair in met else CellState.BAD for pair in itertools.permutations(rest, 2)
    }
    explained = attribute(answers)
    apart = f"all interfaces {rail.name} are up, yet no connection comes about over them"
    for blame in explained.accused:
        text[blame.nodes] = _cut_short(rail, ends, blame.cells) or apart
    for a, b in explained.unexplained:
        text[min(a, b), max(a, b)] = _cut_short(rail, ends, [(a, b)]) or apart
    return [
        wires.accuse(found, nodes, Cause.DEAD_RAIL, (why,), interface=rail.name, score=0.0)
        for nodes, why in text.items()
    ]


def _cut_short(rail: Rail, ends: Mapping[int, RailEnd], cells: Sequence[Pair]) -> str | None:
    """That ends connect and full-sized frames do not get through; None where they do not even connect."""
    ways = ", ".join([f"{a} to {b}" for a, b in cells if b in ends[a].short][:6])
    if not ways:
        return None
    return f"over {rail.name} small packets arrive and frames of full size do not ({ways}): see the MTU"


def _down(end: RailEnd) -> str | None:
    if not end.exists:
        return "the interface does not exist"
    if end.up is False:
        return "the interface is switched off"
    if end.running is False or end.carrier == 0:
        return "the interface has no carrier"
    return "the interface has no IPv4 address" if end.address is None else None


def wire_rates(found: Sequence[Rail]) -> dict[str, float]:
    """Return Gb/s each way at every interface during the all-reduce, 2(k-1)/k S/t, by rail."""
    return {
        rail.name: 2 * (len(rail.ends) - 1) / len(rail.ends) * rail.size_bytes * 8
        / statistics.median(rail.seconds) / 1e9
        for rail in found
        if rail.error is None and rail.size_bytes is not None and rail.seconds
    }  # fmt: skip


def slow(rates: Mapping[str, float], declared: float | None) -> list[str]:
    """Return rails whose all-reduce is so slow that their pairs have to be measured."""
    wanted = _wanted(rates, declared)
    return [name for name, rate in rates.items() if rate < ALL_REDUCE_FLOOR * wanted]


def _wanted(rates: Mapping[str, float], declared: float | None) -> float:
    """Return the declared rate, else that of the best rail."""
    return declared if declared is not None else max(rates.values(), default=0.0)


def _starved(
    plan: Plan, found: Evidence, name: str, seen: Tournament | None
) -> tuple[list[Culprit], str | None]:
    """Find the nodes that starve a slow rail, by its pairs; or the reason why it is undecided."""
    if seen is None:
        return [], "not measured pair by pair"
    if seen.broken:
        return list(broken_culprits(found, seen.broken, name)), None
    judged = wires.assess(plan, seen.nodes, seen.cells, seen.backend)
    if judged.everything and len(judged.confirmed) > 1:
        best = max(score.value for score in judged.scores.values())
        text = f"{name} is slow between all nodes; best direction {best:.2f} of the reference"
        return [Culprit("nic", f"*/{name}", slow_cause(best), (text,), score=best)], None
    accused = [_accused(found, name, judged, blame) for blame in judged.confirmed]
    settled = accused or judged.verdict is Verdict.PASS
    return accused, None if settled else "its pairs are undecided"


def _accused(found: Evidence, name: str, judged: wires.Assessment, blame: Blame) -> Culprit:
    worst = judged.scores[wires.worst_cell(blame, judged.scores)]
    carried = f"{name} carries {worst.value:.3f} of {judged.typical_gbit_s:.3g} Gb/s"
    cells = "; ".join(f"{a} to {b}: {judged.scores[a, b].value:.3f}" for a, b in blame.cells[:6])
    cause, ci = slow_cause(worst.value), finite(*worst.ci95)
    return wires.accuse(found, blame.nodes, cause, (carried, cells), interface=name, score=worst.value, ci=ci)


def _described(rail: Rail, rate: float | None) -> dict[str, object]:
    ends = [{name: getattr(end, name) for name in SHOWN} for end in rail.ends]
    return {"name": rail.name, "gbit_s": rate, "error": rail.error, "ends": ends}


def _by_rank(found: Evidence, record: Rails) -> Check:
    """Groups of one local rank index compared with each other (several ranks a node: untested on hardware).

    Pairs identify the slow node of a slow group.
    """
    ratios = _to_the_others({rail.name: [1 / s for s in rail.seconds] for rail in record.rails})
    bad = {name: ratio.value for name, ratio in ratios.items() if _answer(ratio) is CellState.BAD}
    good = all(ratio.low > ZONE[0] for ratio in ratios.values())
    status = Verdict.FAIL if bad else Verdict.PASS if good else Verdict.INCONCLUSIVE
    if not ratios:
        status = Verdict.SKIPPED
    worst = min((ratio.value for ratio in ratios.values()), default=None)
    return Check(
        status=status,
        required=False,
        measured=Measured(
            value=worst,
            unit="ratio to the other rails",
            n=min((len(rail.seconds) for rail in record.rails), default=0),
            estimator="slowest rail: 20 % trimmed mean of log ratios to the other rails' median",
            reason=None if ratios else "fewer than three rails cannot be compared with each other",
            detail={"ratios": {name: ratio.value for name, ratio in ratios.items()}},
        ),
        expected=Expected.unknown("rails are compared with each other"),
        zone=ZONE,
        culprits=tuple(culprit for name, value in bad.items() for culprit in _in_group(found, name, value)),
        message=f"{len(record.rails)} rails, slowest at {worst:.2f} of the others' rate; {wires.UNCALIBRATED}"
        if worst is not None
        else "Fewer than three rails: nothing to compare with.",
        next_action=None if status in (Verdict.PASS, Verdict.SKIPPED) else RUN_AGAIN,
    )


def _to_the_others(rates: Mapping[str, Sequence[float]]) -> dict[str, Ratio]:
    """Divide every series by the others' median, per repetition; empty for fewer than three."""
    timed = {name: row for name, row in rates.items() if row}
    accuse = decision_z(comparisons=len(rates))
    found = {}
    for name, row in timed.items() if len(timed) > 2 else ():
        others = zip(*(other for key, other in timed.items() if key != name), strict=False)
        pairs = zip(row, map(statistics.median, others), strict=False)
        found[name] = Ratio.of([math.log(own / other) for own, other in pairs], Z_ACQUIT, accuse)
    return found


def _answer(ratio: Ratio) -> CellState:
    if ratio.high < ZONE[1] and ratio.value < ZONE[0]:
        return CellState.BAD
    return CellState.GOOD if ratio.low > ZONE[0] else CellState.OPEN


def _in_group(found: Evidence, name: str, value: float) -> list[Culprit]:
    """Find the adapters that slow a local rank's group: each node's transfers beside its other ranks'."""
    text = f"all-reduce among ranks of {name} at {value:.2f} of the other rails' rate"
    answers = dict[Pair, CellState]()
    for cell in (cell for met in found.all_of(Tournament) for cell in met.cells):
        lanes = {f"local rank {index}": row for index, row in enumerate(cell.lanes_gbit_s)}
        if name in (ratios := _to_the_others(lanes)):
            answers[cell.sender, cell.receiver] = _answer(ratios[name])
    return [
        wires.accuse(found, blame.nodes, Cause.SLOW_LINK, (text,), interface=name, score=value)
        for blame in attribute(answers).accused
    ] or [Culprit("stack", name, Cause.SLOW_LINK, (text, "no single node stands out"), score=value)]
