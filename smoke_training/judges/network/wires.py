"""What a tournament's samples say: scores of cells, who is to blame, and whether more laps could tell (pure).

The probe asks the same functions after every lap whether it has seen enough, so that it and the judge never
disagree.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smoke_training.evidence.links import Cell, LinkSearch, SearchRound
from smoke_training.judges.common import PLAN
from smoke_training.model import Expected, Verdict
from smoke_training.plan import Plan
from smoke_training.statistics import groups, poisson
from smoke_training.statistics.estimators import Z_DECISION, decision_z
from smoke_training.statistics.links import (
    ALONE_AT_MOST,
    LOOKS,
    ZONE,
    Answer,
    Attribution,
    Blame,
    Pair,
    Score,
    Visit,
    accusing_z,
    attribute,
    peer_reference,
    score,
)

# One TCP stream of one CPU: some clouds allow no more per flow outside a placement group, and the receiving
# core tires not far above. A higher declared rate says nothing about what one stream should reach.
STREAM_LIMIT_GBIT_S = 5.0


@dataclass(frozen=True)
class Reference:
    """What every cell should reach in Gb/s; None: what fast peers of the same lap reach."""

    gbit_s: float | None
    expected: Expected


def reference(plan: Plan, backend: str) -> Reference:
    """The declared rate where it binds a single transfer, else the peers."""
    if backend == "nccl":
        rate, words = plan.network_gbit_s, "network_gbit_s"
        if rate is None and plan.rail_gbit_s is not None:
            rate, words = plan.rail_gbit_s * max(1, len(plan.rails)), "rail_gbit_s x rails"
    else:
        rate, words = plan.rail_gbit_s, "rail_gbit_s"
    if rate is None:
        return _peers("the plan declares no rate; cells are compared with the fastest fifth of their lap")
    if backend != "nccl" and rate > STREAM_LIMIT_GBIT_S:
        limit = f"one TCP stream is not expected to fill {rate:g} Gb/s"
        return _peers(f"{limit}; cells are compared with the fastest fifth of their lap")
    found = Expected(value=rate, kind="declared", source=f"{PLAN}, {words}", floor=ZONE[0] * rate)
    return Reference(rate, found)


def _peers(reason: str) -> Reference:
    return Reference(None, Expected(value=None, kind="unknown", source=PLAN, reason=reason))


def lap_references(cells: Sequence[Cell], declared: float | None) -> list[float]:
    """Per lap, what a cell should have reached."""
    laps = max((len(cell.gbit_s) for cell in cells), default=0)
    if declared is not None:
        return [declared] * laps
    return [
        peer_reference(cell.gbit_s[lap] for cell in cells if lap < len(cell.gbit_s)) for lap in range(laps)
    ]


def _visits(rates: Sequence[float], starved: Sequence[float] | None) -> list[Visit]:
    shares: Sequence[float | None] = [None] * len(rates) if starved is None else starved
    return [Visit(rate=rate, starved=share) for rate, share in zip(rates, shares, strict=True)]


def scores(cells: Sequence[Cell], references: Sequence[float], z: float) -> dict[Pair, Score]:
    """The score of every cell that was visited at all; BAD at the quantile `z`."""
    return {
        (cell.sender, cell.receiver): score(
            _visits(cell.gbit_s, cell.starved), references[: len(cell.gbit_s)], z
        )
        for cell in cells
        if cell.gbit_s
    }


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Scores, attribution, and which accusations held while the accused cell was alone on the wire."""

    scores: Mapping[Pair, Score]
    attribution: Attribution
    confirmed: tuple[Blame, ...]
    contended: tuple[Blame, ...]  # slow only while others were exchanging data as well
    unconfirmed: tuple[Blame, ...]
    reference: Reference
    typical_gbit_s: float

    @property
    def verdict(self) -> Verdict:
        """FAIL needs an accusation that was confirmed; PASS needs every cell."""
        if self.confirmed:
            return Verdict.FAIL
        good = all(found.answer is Answer.GOOD for found in self.scores.values())
        return Verdict.PASS if good and self.scores else Verdict.INCONCLUSIVE

    @property
    def everything(self) -> bool:
        """Whether no cell at all is good: then it is no single node's or link's fault."""
        return all(found.answer is Answer.BAD for found in self.scores.values())


def assess(plan: Plan, nodes: Sequence[int], cells: Sequence[Cell], backend: str) -> Assessment:
    """Judge a tournament; needs at least one cell with a visit."""
    wanted = reference(plan, backend)
    references = lap_references(cells, wanted.gbit_s)
    found = scores(cells, references, accusing_z(len(nodes)))
    if not found:
        raise ValueError("no transfer between nodes came to an end")
    attribution = attribute({pair: item.answer for pair, item in found.items()})
    typical = statistics.median(references)
    alone = {
        (cell.sender, cell.receiver): score(
            _visits(cell.serial_gbit_s, cell.serial_starved), [typical] * len(cell.serial_gbit_s), Z_DECISION
        ).answer
        for cell in cells
        if cell.serial_gbit_s
    }
    verdicts = {blame: _confirmation(blame, alone, len(nodes)) for blame in attribution.accused}
    return Assessment(
        scores=found,
        attribution=attribution,
        confirmed=tuple(blame for blame, answer in verdicts.items() if answer is Answer.BAD),
        contended=tuple(blame for blame, answer in verdicts.items() if answer is Answer.GOOD),
        unconfirmed=tuple(blame for blame, answer in verdicts.items() if answer is Answer.OPEN),
        reference=wanted,
        typical_gbit_s=typical,
    )


def _confirmation(blame: Blame, alone: Mapping[Pair, Answer], nodes: int) -> Answer:
    if nodes <= ALONE_AT_MOST:
        return Answer.BAD
    answers = {alone[cell] for cell in blame.cells if cell in alone}
    if Answer.GOOD in answers or not answers:
        return Answer.GOOD if answers else Answer.OPEN
    return Answer.BAD if answers == {Answer.BAD} else Answer.OPEN


def worst_cell(blame: Blame, found: Mapping[Pair, Score]) -> Pair:
    """The cell of an accusation that should be measured alone."""
    return min(blame.cells, key=lambda cell: found[cell].ratio)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Retransmission rates of cells and of whole nodes, and who is to blame for lost packets."""

    cells: Mapping[Pair, poisson.Rate]
    lines: Mapping[tuple[int, str], poisson.Rate]  # (node, sends | receives)
    total: poisson.Rate
    attribution: Attribution

    @property
    def verdict(self) -> Verdict:
        """FAIL: packets are certainly lost somewhere. PASS: certainly nowhere to or from any node."""
        answers = [rate.answer for rate in (*self.cells.values(), *self.lines.values(), self.total)]
        if Answer.BAD in answers:
            return Verdict.FAIL
        clean = all(rate.answer is Answer.GOOD for rate in self.lines.values())
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
    clean_below = max(poisson.TOLERATED, worst / 3)
    answers = {}
    for pair, rate in rates.items():
        clean = rate.answer is not Answer.BAD and rate.high < clean_below
        answers[pair] = Answer.GOOD if clean else rate.answer
    lines = {
        (node, way): _pooled([c for c in known if (c.sender if way == "sends" else c.receiver) == node], z)
        for node, way in sorted(ends)
    }
    return Losses(cells=rates, lines=lines, total=_pooled(known, z), attribution=attribute(answers))


def _lost(cell: Cell) -> list[int]:
    """Per visit, retransmissions without those that turned out to be needless."""
    again = cell.retransmitted or ()
    needless = cell.spurious if cell.spurious is not None else (0,) * len(again)
    return [max(0, a - b) for a, b in zip(again, needless, strict=True)]


def _pooled(cells: Sequence[Cell], z: float) -> poisson.Rate:
    events = [count for cell in cells for count in _lost(cell)]
    return poisson.rate(events, [count for cell in cells for count in cell.segments or ()], z)


def lost_on_the_way(cell: Cell, rate: float) -> float | None:
    """Which part of a cell's losses happened before the receiver's interface counted the bytes, 0 .. 1.

    About 0: the packets arrived at the receiver's interface and were lost behind it. About 1: they never
    arrived. None where bytes are not known or nothing was lost.
    """
    if not (cell.sent_bytes and cell.received_bytes and rate > 0 and sum(cell.sent_bytes)):
        return None
    return (1 - sum(cell.received_bytes) / sum(cell.sent_bytes)) / rate


def enough(plan: Plan, nodes: Sequence[int], cells: Sequence[Cell], backend: str) -> bool:
    """Whether more laps could not change what is said about rates and losses."""
    found = assess(plan, nodes, cells, backend)
    lost = losses(cells)
    rates_settled = found.attribution.settled
    losses_settled = lost is None or (
        lost.verdict is Verdict.PASS or (lost.verdict is Verdict.FAIL and bool(lost.attribution.accused))
    )
    return rates_settled and losses_settled


def suspicious(plan: Plan, nodes: Sequence[int], cells: Sequence[Cell], backend: str) -> bool:
    """Whether cells are slow, or packets lost, that nobody could be blamed for yet."""
    found = assess(plan, nodes, cells, backend).attribution
    lost = losses(cells)
    unblamed = lost is not None and lost.verdict is Verdict.FAIL and not lost.attribution.accused
    return bool(found.unexplained) or unblamed


def trial_answers(
    rounds: Sequence[SearchRound], trial: groups.Trial, declared: float | None
) -> tuple[Answer, ...]:
    """One answer per group of the last round; without a declared rate, by the peers of the first round."""
    first = lap_references(rounds[0].cells, declared)
    now = rounds[-1].cells
    typical = statistics.median(first) if first else math.nan
    laps = max((len(cell.gbit_s) for cell in now), default=0)
    references = first if len(rounds) == 1 else [typical] * laps
    # Not shared out among cells and rounds: nobody is accused before three trials of new samples agree.
    found = scores(now, references, Z_DECISION)
    return tuple(_group_answer(group, found) for group in trial.groups)


def _group_answer(group: Sequence[int], found: Mapping[Pair, Score]) -> Answer:
    answers = {item.answer for pair, item in found.items() if set(pair) <= set(group)}
    if Answer.BAD in answers:
        return Answer.BAD
    return Answer.GOOD if answers == {Answer.GOOD} else Answer.OPEN


def replay(plan: Plan, found: LinkSearch) -> groups.Location:
    """Run the search again over what was recorded; ValueError if the record does not fit the search."""
    declared = reference(plan, found.backend).gbit_s
    search = groups.locate(found.nodes)
    trial, done = next(search), 0
    while True:
        if done >= len(found.rounds):
            raise ValueError(f"the record ends after {done} rounds, before the search did")
        if found.rounds[done].groups != trial.groups:
            raise ValueError(f"round {done} of the record is not the one that the search asks for")
        done += 1
        try:
            trial = search.send(trial_answers(found.rounds[:done], trial, declared))
        except StopIteration as end:
            if not isinstance(end.value, groups.Location):
                raise ValueError("the search ended without a location") from end
            return end.value
