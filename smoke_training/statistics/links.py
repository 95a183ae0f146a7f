"""Attribute slow exchanges between nodes to nodes or links: schedule, scores, attribution (pure).

All pairs exchange data in rounds of disjoint pairs (the circle method). A *cell* is one direction of one
pair, of rate b_ij ~ min(s_i, r_j) l_ij. So a node whose whole row (it sends) or column (it receives) is slow
is to blame for it, and a single slow cell between nodes that are fast elsewhere is a slow link.

The samples of a cell come from repetitions of the schedule, seconds apart, because noise comes in bursts. A
visit during most of which a thread of either end waited for a CPU never accuses a cell. Log ratios to the
reference (the declared rate, or fast peers of the same repetition) get a 20 % trimmed mean with its bounds.
BAD: the estimate below 0.75 and, at the cell's share of the family-wise error (`estimators`), the upper bound
below 0.85. GOOD: the lower bound above 0.75 at the level of acquittals, or a third of the visits, at least
three, reached 0.85, which no slow wire does. A cell that no rule settles is OPEN.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from smoke_training.statistics.estimators import Z_ACQUIT, Z_DECISION, Ratio, decision_z, trimmed_interval

FIRST_LOOK, MOST_REPETITIONS = 6, 60  # repetitions before the first look, and at most; one look each
LOOKS = 1 + MOST_REPETITIONS - FIRST_LOOK
ALONE_AT_MOST = 3  # up to three nodes a round has one pair, so every visit is alone on the wire
ZONE = (0.75, 0.85)
CRAWL = 0.25  # three visits all below a quarter need no interval: no measured noise did that
CRAWL_VISITS = 3
REACHED_VISITS, REACHED_SHARE = 3, 1 / 3  # of the visits that reach the zone's upper end: not a slow wire
STARVED = 0.6  # share of a visit in which a thread waited for a CPU, above which it cannot accuse
PEERS = 0.8  # quantile of a repetition's cells, the reference: with one bad node of three, 2 of 6 are good

Pair = tuple[int, int]


class CellState(StrEnum):
    """State of one cell, or of one group of nodes, by its samples."""

    GOOD = "GOOD"
    BAD = "BAD"
    OPEN = "OPEN"


def rounds(count: int) -> tuple[tuple[Pair, ...], ...]:
    """Return rounds of disjoint pairs in which each of `count` players meets every other once.

    By the circle method: `count - 1` rounds; `count` for an odd number, with one player idle in each.
    """
    if count < 2:
        return ()
    players: list[int | None] = [*range(count), *([None] if count % 2 else [])]
    found = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = zip(players[:half], reversed(players[half:]), strict=True)
        found.append(tuple((min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None))
        players = [players[0], players[-1], *players[1:-1]]
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class CellScore(Ratio):
    """A cell's ratio to the reference."""

    visits: int
    starved_visits: int
    answer: CellState


def peer_reference(rates: Iterable[float]) -> float:
    """Return the rate of a healthy cell of a repetition: the 0.8 quantile (upper order statistic)."""
    ordered = sorted(rates)
    if not ordered:
        raise ValueError("a repetition without rates has no reference")
    return ordered[math.ceil(PEERS * (len(ordered) - 1) - 1e-9)]


def accusing_z(nodes: int) -> float:
    """Return the quantile at which a cell of a tournament of so many nodes is BAD.

    Divided among cells and looks if a BAD cell is an accusation by itself. Above three nodes an accusation
    needs new samples of that cell, BAD again at one look, which is a comparison of its own.
    """
    return decision_z(comparisons=nodes * (nodes - 1), looks=LOOKS) if nodes <= ALONE_AT_MOST else Z_DECISION


def score(
    rates: Sequence[float], starved: Sequence[float | None] | None, references: Sequence[float], z: float
) -> CellScore:
    """Judge one cell by its visits: their rates, and how much of each a thread waited for a CPU, if known.

    `references[k]` is the expected rate of visit k, in its unit. BAD at the quantile `z`,
    which belongs to the number of cells and looks (`estimators.decision_z`).
    """
    logs = [math.log(max(rate, 1e-12) / wanted) for rate, wanted in zip(rates, references, strict=True)]
    shares: Sequence[float | None] = [None] * len(logs) if starved is None else starved
    calm = [x for x, share in zip(logs, shares, strict=True) if share is None or share <= STARVED]
    everything, trusted = trimmed_interval(logs, Z_ACQUIT), trimmed_interval(calm, z) if calm else None
    tolerated, clearly = (math.log(bound) for bound in ZONE)
    reached = sum(x >= clearly for x in logs) >= max(REACHED_VISITS, REACHED_SHARE * len(logs))
    crawls = len(calm) >= CRAWL_VISITS and max(calm) < math.log(CRAWL)
    below = trusted is not None and trusted.estimate < tolerated and trusted.high < clearly
    answer = CellState.GOOD if reached or everything.low > tolerated else CellState.OPEN
    shown, level = logs, Z_ACQUIT
    if not reached and (crawls or below):
        answer, shown, level = CellState.BAD, calm, z
    counts = {"visits": len(logs), "starved_visits": len(logs) - len(calm)}
    return CellScore.of(shown, level, level, answer=answer, **counts)


@dataclass(frozen=True, kw_only=True)
class Blame:
    """A node (one number) or a link (sender, receiver): its bad direction, and the cells."""

    nodes: tuple[int, ...]
    direction: str  # node: sends | receives | both; link: one way | both
    cells: tuple[Pair, ...]


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """Certain blames (nodes first), the BAD cells that nothing could be blamed for, and the OPEN cells."""

    accused: tuple[Blame, ...]
    unexplained: tuple[Pair, ...]
    open: tuple[Pair, ...]

    @property
    def settled(self) -> bool:
        """True if more samples could change nothing."""
        return not self.open and not self.unexplained


@dataclass(frozen=True, kw_only=True)
class LinksSoFar:
    """Assessment of the links after some rounds.

    `enough`: more rounds could change nothing. `suspicious`: something is slow or lost, and nothing is
    blamed yet. `accused` is the worst cell (sender, receiver) of every accusation.
    """

    enough: bool
    suspicious: bool
    accused: tuple[Pair, ...]


def attribute(answers: Mapping[Pair, CellState]) -> Attribution:
    """Explain BAD cells by nodes and links.

    A node is blamed for sending (receiving) if all its measured cells of that direction, at least two, are
    BAD. A remaining BAD cell is blamed on the link if its sender reaches another node and its receiver is
    reached by another: only then is neither of them the reason. With two nodes there is only the link.
    """
    bad = {cell for cell, answer in answers.items() if answer is CellState.BAD}
    unsettled = tuple(sorted(cell for cell, answer in answers.items() if answer is CellState.OPEN))
    if len({node for cell in answers for node in cell}) == 2:
        return Attribution(accused=_links(bad), unexplained=(), open=unsettled)
    lines = _bad_lines(answers)
    left, blamed = set(bad), dict[tuple[int, str], frozenset[Pair]]()
    while lines:
        key = max(lines, key=lambda k: (len(lines[k] & left), -k[0]))
        cells = lines.pop(key)
        if len(cells & left) >= 2:
            blamed[key] = cells
            left -= cells
    senders, receivers = ({pair[end] for pair, a in answers.items() if a is CellState.GOOD} for end in (0, 1))
    certain = {cell for cell in left if cell[0] in senders and cell[1] in receivers}
    accused = _nodes(blamed) + _links(certain)
    return Attribution(accused=accused, unexplained=tuple(sorted(left - certain)), open=unsettled)


def _bad_lines(answers: Mapping[Pair, CellState]) -> dict[tuple[int, str], frozenset[Pair]]:
    """(node, direction) -> its cells, where all of them are BAD."""
    lines: dict[tuple[int, str], set[Pair]] = {}
    for cell in answers:
        lines.setdefault((cell[0], "sends"), set()).add(cell)
        lines.setdefault((cell[1], "receives"), set()).add(cell)
    return {
        key: frozenset(cells)
        for key, cells in lines.items()
        if len(cells) >= 2 and all(answers[cell] is CellState.BAD for cell in cells)
    }


def _nodes(blamed: Mapping[tuple[int, str], frozenset[Pair]]) -> tuple[Blame, ...]:
    found = []
    for node in sorted({node for node, _ in blamed}):
        ways = [way for way in ("sends", "receives") if (node, way) in blamed]
        cells = frozenset[Pair]().union(*(blamed[node, way] for way in ways))
        direction = "both" if len(ways) == 2 else ways[0]
        found.append(Blame(nodes=(node,), direction=direction, cells=tuple(sorted(cells))))
    return tuple(found)


def _links(cells: Iterable[Pair]) -> tuple[Blame, ...]:
    found: dict[Pair, list[Pair]] = {}
    for sender, receiver in sorted(cells):
        found.setdefault((min(sender, receiver), max(sender, receiver)), []).append((sender, receiver))
    return tuple(
        Blame(nodes=ends, direction="both" if len(way) == 2 else "one way", cells=tuple(way))
        for ends, way in found.items()
    )
