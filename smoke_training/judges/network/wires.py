"""Evaluate a tournament's samples: scores of cells, and the nodes and links to blame (pure)."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smoke_training.evidence import Evidence
from smoke_training.evidence.links import Cell
from smoke_training.expected.links import LinkReference, reference
from smoke_training.judges.common import node_name
from smoke_training.model import Cause, Culprit, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import poisson
from smoke_training.statistics.estimators import Z_DECISION, decision_z
from smoke_training.statistics.links import (
    ALONE_AT_MOST,
    LOOKS,
    Attribution,
    Blame,
    CellScore,
    CellState,
    Pair,
    accusing_z,
    attribute,
    peer_reference,
    score,
)

# Zones, visits and limits come from shaped wires under TCP (tests/faults): elsewhere results are reported
# and gate nothing, until accepted runs of that fabric show how much its transfers vary.
UNCALIBRATED = "reported, not gated: no fabric of accelerators was calibrated"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Scores, attribution, and the accusations confirmed with the cell alone on the wire."""

    scores: Mapping[Pair, CellScore]
    attribution: Attribution
    confirmed: tuple[Blame, ...]
    contended: tuple[Blame, ...]  # slow only while others were exchanging data as well
    reference: LinkReference
    typical_gbit_s: float

    @property
    def verdict(self) -> Verdict:
        """FAIL needs an accusation that was confirmed; PASS needs every cell."""
        if self.confirmed:
            return Verdict.FAIL
        good = all(found.answer is CellState.GOOD for found in self.scores.values())
        return Verdict.PASS if good and self.scores else Verdict.INCONCLUSIVE

    @property
    def worst(self) -> Pair:
        """The slowest cell."""
        return min(self.scores, key=lambda pair: self.scores[pair].value)

    @property
    def everything(self) -> bool:
        """True if no cell is good: then it is not the fault of a single node or link."""
        return all(found.answer is CellState.BAD for found in self.scores.values())


def assess(plan: Plan, nodes: Sequence[int], cells: Sequence[Cell], backend: str) -> Assessment:
    """Judge a tournament; needs at least one cell with a visit."""
    wanted = reference(plan, backend)
    # Per repetition of the schedule, the expected rate of a cell.
    visits = range(max((len(cell.gbit_s) for cell in cells), default=0))
    references = [
        peer_reference(cell.gbit_s[i] for cell in cells if i < len(cell.gbit_s))
        if wanted.gbit_s is None
        else wanted.gbit_s
        for i in visits
    ]
    z = accusing_z(len(nodes))
    found = {
        (cell.sender, cell.receiver): score(cell.gbit_s, cell.starved, references[: len(cell.gbit_s)], z)
        for cell in cells
        if cell.gbit_s
    }
    if not found:
        raise ValueError("no transfer between nodes completed")
    attribution = attribute({pair: item.answer for pair, item in found.items()})
    typical = statistics.median(references)
    alone = {
        (cell.sender, cell.receiver): score(
            cell.serial_gbit_s, cell.serial_starved, [typical] * len(cell.serial_gbit_s), Z_DECISION
        ).answer
        for cell in cells
        if cell.serial_gbit_s
    }
    verdicts = {blame: _confirmation(blame, alone, len(nodes)) for blame in attribution.accused}
    return Assessment(
        scores=found,
        attribution=attribution,
        confirmed=tuple(blame for blame, answer in verdicts.items() if answer is CellState.BAD),
        contended=tuple(blame for blame, answer in verdicts.items() if answer is CellState.GOOD),
        reference=wanted,
        typical_gbit_s=typical,
    )


def _confirmation(blame: Blame, alone: Mapping[Pair, CellState], nodes: int) -> CellState:
    if nodes <= ALONE_AT_MOST:
        return CellState.BAD
    answers = {alone[cell] for cell in blame.cells if cell in alone}
    if CellState.GOOD in answers or not answers:
        return CellState.GOOD if answers else CellState.OPEN
    return CellState.BAD if answers == {CellState.BAD} else CellState.OPEN


def worst_cell(blame: Blame, found: Mapping[Pair, CellScore]) -> Pair:
    """Return the cell of an accusation that should be measured alone."""
    return min(blame.cells, key=lambda cell: found[cell].value)


def accuse(
    found: Evidence,
    nodes: Sequence[int],
    cause: Cause,
    evidence: tuple[str, ...],
    *,
    interface: str | None = None,
    score: float | None = None,
    ci: tuple[float, float] | None = None,
) -> Culprit:
    """Accuse a node, its interface where one is named, or the link between two nodes."""
    kind, name = "link", "-".join(map(str, nodes))
    if len(nodes) == 1:
        kind, name = ("nic", f"{name}/{interface}") if interface else ("node", name)
    host = ", ".join(node_name(node, found) for node in nodes)
    return Culprit(kind, name, cause, evidence, node=host, score=score, ci=ci)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Retransmission rates of cells and of whole nodes, and the nodes or links to blame for lost packets."""

    cells: Mapping[Pair, poisson.Rate]
    lines: Mapping[tuple[int, str], poisson.Rate]  # (node, sends | receives)
    total: poisson.Rate
    attribution: Attribution

    @property
    def verdict(self) -> Verdict:
        """FAIL: packets are certainly lost somewhere. PASS: certainly nowhere to or from any node."""
        answers = [rate.answer for rate in (*self.cells.values(), *self.lines.values(), self.total)]
        if CellState.BAD in answers:
            return Verdict.FAIL
        clean = all(rate.answer is CellState.GOOD for rate in self.lines.values())
        return Verdict.PASS if clean and self.lines else Verdict.INCONCLUSIVE


def losses(cells: Sequence[Cell]) -> Losses | None:
    """Judge the retransmissions of a tournament; None where senders do not count them."""
    known = [cell for cell in cells if cell.segments and cell.retransmitted and sum(cell.segments)]
    if not known or len(known) < len([cell for cell in cells if cell.gbit_s]):
        return None
    ends = {end for cell in known for end in ((cell.sender, "sends"), (cell.receiver, "receives"))}
    z = decision_z(comparisons=len(known) + len(ends) + 1, looks=LOOKS)
    rates = {(cell.sender, cell.receiver): _pooled([cell], z) for cell in known}
    worst = max(rate.estimate for rate in rates.values())
    clean_below = max(poisson.CLEAN, worst / 3)
    answers = {}
    for pair, rate in rates.items():
        clean = rate.answer is not CellState.BAD and rate.high < clean_below
        answers[pair] = CellState.GOOD if clean else rate.answer
    lines = {
        (node, way): _pooled([c for c in known if (c.sender if way == "sends" else c.receiver) == node], z)
        for node, way in sorted(ends)
    }
    return Losses(cells=rates, lines=lines, total=_pooled(known, z), attribution=attribute(answers))


def _pooled(cells: Sequence[Cell], z: float) -> poisson.Rate:
    """Retransmissions over all segments, without needless ones and without every cell's bursts."""
    events, exposures = list[int](), list[int]()
    for cell in cells:
        again = cell.retransmitted or ()
        needless = cell.spurious if cell.spurious is not None else (0,) * len(again)
        lost = [max(0, a - b) for a, b in zip(again, needless, strict=True)]
        kept = poisson.steady(lost, cell.segments or ())
        events += kept[0]
        exposures += kept[1]
    return poisson.rate(events, exposures, z)
