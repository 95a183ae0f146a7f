"""Pairs of nodes, both directions, in rounds of disjoint pairs.

Up to `ALL_PAIRS_AT_MOST` nodes every pair is measured. Above it a sample of the rounds is, in which every
node has 15 peers (14 if their number is odd): a single slow link is seen only if its pair was drawn.

The schedule is repeated until the judge's own rule is decided, or the time is over. What is accused is then
measured once more while nothing else is on the network.
"""

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smoke_training.evidence import Record
from smoke_training.evidence.links import Broken, Cell, PairsSkipped, Tournament
from smoke_training.expected.links import reference
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.network.arena import (
    COUNTED,
    Arena,
    Half,
    Schedule,
    nothing_between,
    open_arena,
    over_sockets,
)
from smoke_training.probes.network.endpoints import MESSAGES
from smoke_training.probes.stopwatch import complete
from smoke_training.runtime import counters
from smoke_training.statistics.links import (
    ALONE_AT_MOST,
    CRAWL,
    CRAWL_VISITS,
    FIRST_LOOK,
    MOST_REPETITIONS,
    LinksSoFar,
    Pair,
    rounds,
)

ALL_PAIRS_AT_MOST = 16  # nodes
VISIT_S = 0.05
SMALLEST, LARGEST = 64 << 10, 64 << 20  # bytes of a message
PILOT_BYTES = 64 << 10
SHORT = 16 << 10  # of a message between very slow pairs
SERIAL_VISITS = 10
ACCUSED_AT_MOST = 3
QUICK_S, FULL_S = 5.0, 14.0
FIGURE_REPETITIONS, FIGURE_S = 20, 2.5  # a figure to compare later runs with needs more visits than a verdict
SUSPICION = 2.5  # times the limit while cells are slow and no node or link is accused


def measure(context: ProbeContext) -> Iterator[Record]:
    """`tournament` evidence; `pairs_skipped` where no network lies between nodes."""
    group, plan = context.group, context.plan
    reason = nothing_between(group, plan)
    if reason is not None:
        yield PairsSkipped(reason=reason)
        return
    interface = plan.rails[0] if plan.rails and not group.cuda else None
    arena, errors = open_arena(group, "pairs", interface, sockets=over_sockets(group, plan))
    if arena is None:
        yield PairsSkipped(reason="could not connect: " + "; ".join(errors))
        return
    yield Rounds(context, arena).run("pairs", FULL_S if context.full else QUICK_S)


def schedule_of(nodes: Sequence[int], dice: random.Random) -> list[list[Pair]]:
    """Return the rounds of pairs, first one direction, then the other; a sample above 16 nodes."""
    forward = [[(nodes[a], nodes[b]) for a, b in pairs] for pairs in rounds(len(nodes))]
    if len(nodes) > ALL_PAIRS_AT_MOST:
        forward = dice.sample(forward, ALL_PAIRS_AT_MOST - 1)
    return [half for pairs in forward for half in (pairs, [(b, a) for a, b in pairs])]


Visit = Mapping[str, Any]
"""One transfer by series of `Cell`."""


class CellTally:
    """Series of all cells, from the two ends of each transfer."""

    def __init__(self) -> None:
        self._visits: dict[Pair, list[Visit]] = {}
        self._serial: dict[Pair, list[Visit]] = {}

    def add(self, halves: Iterable[Half], *, serial: bool = False) -> None:
        """Append one visit per pair that both ends report; a visit that one end lost is not counted.

        The halves are those of one repetition of the schedule from every rank.
        """
        found: dict[Pair, list[Half]] = {}
        for half in halves:
            found.setdefault(half.pair, []).append(half)
        for pair, both in sorted(found.items()):
            sent = [half for half in both if half.sending]
            received = [half for half in both if half.gbit_s is not None]
            if sent and received:
                visits = self._serial if serial else self._visits
                visits.setdefault(pair, []).append(_visit(sent, received))

    def cells(self) -> tuple[Cell, ...]:
        """Return all cells so far."""
        return tuple(
            _cell(pair, visits, self._serial.get(pair, [])) for pair, visits in sorted(self._visits.items())
        )


def _visit(sent: Sequence[Half], received: Sequence[Half]) -> Visit:
    """Ranks of one node read the same counters, so one of them is used; their rates add up."""
    shares = complete([half.starved for half in (*sent, *received)])
    return {
        **sent[0].counted,
        "received_bytes": received[0].counted["received_bytes"],
        "gbit_s": sum(half.gbit_s or 0.0 for half in received),
        "lanes": tuple(half.gbit_s or 0.0 for half in sorted(received, key=lambda half: half.lane)),
        "starved": max(shares) if shares else None,
    }


def _cell(pair: Pair, visits: Sequence[Visit], serial: Sequence[Visit]) -> Cell:
    lanes = tuple(zip(*(visit["lanes"] for visit in visits), strict=False))
    return Cell(
        sender=pair[0],
        receiver=pair[1],
        gbit_s=tuple(visit["gbit_s"] for visit in visits),
        **{name: complete([visit[name] for visit in visits]) for name in ("starved", *COUNTED)},
        serial_gbit_s=tuple(visit["gbit_s"] for visit in serial),
        serial_starved=complete([visit["starved"] for visit in serial]) or None,
        lanes_gbit_s=lanes if len(lanes) > 1 else (),
    )


@dataclass
class Rounds:
    """Repeat all rounds until decided or out of time, then measure the accused alone."""

    context: ProbeContext
    arena: Arena
    tally: CellTally = field(default_factory=CellTally)
    broken: list[Broken] = field(default_factory=list)
    usual: int = PILOT_BYTES  # of a message
    crawling: frozenset[Pair] = frozenset()  # very slow pairs of nodes

    def run(self, phase: str, limit_s: float) -> Tournament:
        """The `tournament` evidence."""
        began, arena = time.monotonic(), self.arena
        dice = random.Random(self.context.plan.seed)  # noqa: S311 - an order against drift, not a secret
        schedule = schedule_of(arena.nodes, dice)
        self._choose_sizes(schedule)
        limit_s = max(limit_s, 1.5 * FIRST_LOOK * len(schedule) * (VISIT_S + 0.01))
        for repetitions in range(1, MOST_REPETITIONS + 1):
            if self.broken:
                break
            dice.shuffle(schedule)
            self._repeat(schedule)
            if repetitions >= CRAWL_VISITS and not self.broken:
                # Clocks differ between ranks: rank 0's is used by all.
                spent = arena.group.gather(time.monotonic() - began)[0]
                if self._done(repetitions, spent, limit_s):
                    break
        if not self.broken and self.tally.cells() and len(arena.nodes) > ALONE_AT_MOST:
            # The worst cell of every accusation again, with nothing else on the network.
            for pair in self._seen().accused[:ACCUSED_AT_MOST]:
                for _ in range(CRAWL_VISITS if pair in self.crawling else SERIAL_VISITS):
                    if not self.broken:
                        self._repeat([[pair]], serial=True)
        kind, ports = "tcp" if arena.sockets else "efa", counters.ports().values()
        resent = any(port.retransmitted is not None for port in ports)
        counted = counters.tcp() is not None if arena.sockets else resent
        return Tournament(
            phase=phase,
            nodes=arena.nodes,
            interface=arena.interface,
            backend=arena.group.backend,
            streams=arena.streams,
            message_bytes=self.usual,
            seconds=time.monotonic() - began,
            counter=kind if counted else "none",
            cells=self.tally.cells(),
            broken=tuple(self.broken),
        )

    def _size(self, pair: Pair) -> int:
        return min(SHORT, self.usual) if pair in self.crawling else self.usual

    def _repeat(self, schedule: Schedule, *, serial: bool = False) -> None:
        """Add one visit of every pair of every round to the tally."""
        halves, self.broken = self.arena.exchange(schedule, self._size)
        self.tally.add(halves, serial=serial)

    def _seen(self) -> LinksSoFar:
        group, nodes = self.arena.group, self.arena.nodes
        return self.context.sampling.links(self.tally.cells(), nodes, group.backend)

    def _done(self, repetitions: int, spent: float, limit_s: float) -> bool:
        seen = self._seen()
        precise = repetitions >= FIGURE_REPETITIONS or (repetitions >= FIRST_LOOK and spent > FIGURE_S)
        return (precise and seen.enough) or spent > (SUSPICION if seen.suspicious else 1.0) * limit_s

    def _choose_sizes(self, schedule: Schedule) -> None:
        """Choose bytes with which a visit takes about VISIT_S at the fastest pair's rate, by a pilot.

        A declared rate takes precedence over the pilot's, which a full token bucket inflates. Pairs that are
        very slow in all of `CRAWL_VISITS` pilots get short messages; their first pilot stays in the record.
        """
        arena = self.arena
        first, rates = self._pilot(schedule)
        fastest = max(rates.values(), default=1.0)
        declared = reference(self.context.plan, arena.group.backend).gbit_s
        rate = declared or fastest
        slow = CRAWL * min(rate, fastest)
        self.crawling = frozenset(pair for pair, found in rates.items() if found < slow)
        for _ in range(CRAWL_VISITS - 1):
            if self.broken or not self.crawling:
                break
            again = [[pair for pair in pairs if pair in self.crawling] for pairs in schedule]
            # At once, while the bucket is empty.
            _, rates = self._pilot([pairs for pairs in again if pairs])
            self.crawling = frozenset(pair for pair in self.crawling if rates.get(pair, 0.0) < slow)
        self.tally.add(half for half in first if half.pair in self.crawling)
        self.usual = self._fitting(rate)
        if declared is None and not self.broken:
            # Of the pilot's short messages latency takes most of the time, on accelerators above all.
            _, rates = self._pilot(schedule)
            self.usual = self._fitting(max(rate, *rates.values()))

    def _fitting(self, gbit_s: float) -> int:
        """Return the bytes of a message with which a visit at this rate takes about VISIT_S."""
        usual = int(gbit_s * 1e9 / 8 / self.arena.streams * VISIT_S / MESSAGES)
        return min(LARGEST, max(SMALLEST, usual))

    def _pilot(self, schedule: Schedule) -> tuple[list[Half], dict[Pair, float]]:
        """Run one visit of every pair: its halves, Gb/s by pair of nodes."""
        halves, self.broken = self.arena.exchange(schedule, self._size)
        tally = CellTally()
        tally.add(halves)
        return halves, {(cell.sender, cell.receiver): cell.gbit_s[0] for cell in tally.cells()}
