"""Every pair of nodes, both directions, in rounds of disjoint pairs; a search where there are too many nodes.

Laps of the whole schedule are repeated until the judge's own rule says that more could change nothing, or
until the time is over. What is accused is then measured once more while nothing else is on the wire.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace

from smoke_training.evidence.links import Broken, Cell, SearchRound
from smoke_training.judges.network import wires as judged
from smoke_training.plan import Plan
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.network.tally import Half, Tally
from smoke_training.probes.network.wires import GlooWire, NcclWire, Wire, has_seat, meeting_store
from smoke_training.runtime import counters, heartbeat, host
from smoke_training.statistics import groups
from smoke_training.statistics.links import (
    ALONE_AT_MOST,
    CRAWL,
    CRAWL_VISITS,
    FIRST_LOOK,
    MOST_LAPS,
    Pair,
    ring,
    rounds,
)

TOURNAMENT_AT_MOST = 16  # nodes; above it the search takes fewer rounds than the tournament
MESSAGES = 6
VISIT_S = 0.05
SMALLEST, LARGEST = 64 << 10, 64 << 20  # bytes of a message
PILOT_BYTES = 64 << 10
SHORT = 16 << 10
SERIAL_VISITS = 10
SEARCH_VISITS = 8
ACCUSED_AT_MOST = 3
QUICK_S, FULL_S = 5.0, 14.0
FIGURE_LAPS, FIGURE_S = 20, 2.5  # a figure to compare later runs with takes more visits than a verdict
SUSPICION = 2.5  # times the limit while cells are slow and nobody is certainly to blame


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Who exchanges data over what: the gang, the nodes, and this rank's seat (None: it only looks on)."""

    gang: Gang
    nodes: tuple[int, ...]
    wire: Wire | None
    interface: str | None
    seed: int

    @property
    def streams(self) -> int:
        """Concurrent transfers per direction of a pair."""
        return max(1, self.gang.world // max(1, len(self.nodes))) if self.gang.cuda else 1


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Bytes of a message: the usual, and short ones for pairs of nodes that hardly move."""

    usual: int
    crawling: frozenset[Pair] = frozenset()

    def of(self, arena: Arena, to: int | None, source: int | None) -> int:
        """Bytes for what this seat does: with one peer the pair's, in a ring the usual."""
        own, short = arena.gang.node, min(SHORT, self.usual)
        if to is not None and source is None:
            return short if (own, arena.nodes[to]) in self.crawling else self.usual
        if source is not None and to is None:
            return short if (arena.nodes[source], own) in self.crawling else self.usual
        return self.usual


@dataclass
class Lap:
    """One rank's halves of the visits of a lap."""

    halves: list[Half] = field(default_factory=list)
    broken: Broken | None = None


def measure(context: Context) -> Iterator[Line]:
    """`tournament` or `link_search` evidence; `pairs_skipped` where no wire lies between nodes."""
    gang, plan = context.gang, context.plan
    reason = nothing_between(gang, plan)
    if reason is not None:
        yield {"kind": "pairs_skipped", "reason": reason}
        return
    interface = plan.rails[0] if plan.rails and not gang.cuda else None
    arena, errors = open_arena(gang, plan, "pairs", interface)
    if arena is None:
        yield {"kind": "pairs_skipped", "reason": "could not connect: " + "; ".join(errors)}
        return
    limit = FULL_S if context.full else QUICK_S
    if len(arena.nodes) <= TOURNAMENT_AT_MOST:
        yield tournament(arena, plan, "pairs", limit)
    else:
        yield search(arena, plan)


def nothing_between(gang: Gang, plan: Plan) -> str | None:
    """Why there is nothing between nodes to measure, or None."""
    if plan.nodes < 2:
        return "all ranks run on one node"
    if host.is_loopback(host.resolve(os.environ.get("MASTER_ADDR", "")) or ""):
        return "all nodes are on this machine, joined by its loopback interface"
    return None if gang.world > 1 else "there is one rank"


def open_arena(
    gang: Gang, plan: Plan, name: str, interface: str | None, nodes: Sequence[int] = ()
) -> tuple[Arena | None, list[str]]:
    """Seats for all nodes, or None with every node's reason; all ranks get the same answer."""
    places = [item for item in gang.gather((gang.node, gang.local_rank)) if isinstance(item, tuple)]
    chosen = tuple(nodes) or tuple(sorted({node for node, _ in places}))
    wire: Wire | None = None
    error = None
    try:
        if gang.cuda:
            wire = NcclWire(gang, [places.index((node, gang.local_rank)) for node in chosen])
        elif has_seat(gang) and gang.node in chosen:
            wire = GlooWire(meeting_store(name), chosen.index(gang.node), len(chosen), interface)
    except (RuntimeError, ValueError) as problem:
        error = f"node {gang.node}: {_first_line(problem)}"
    errors = sorted({item for item in gang.gather(error) if isinstance(item, str)})
    if errors:
        return None, errors
    return Arena(gang=gang, nodes=chosen, wire=wire, interface=interface, seed=plan.seed), []


def tournament(arena: Arena, plan: Plan, phase: str, limit_s: float) -> Line:
    """`tournament` evidence: laps of all pairs until settled or over time, then the accused alone."""
    began, tally = time.monotonic(), Tally()
    schedule = [directed for half in _directions(rounds(len(arena.nodes))) for directed in half]
    sizes, broken = _message_bytes(arena, plan, schedule, tally)
    limit_s = max(limit_s, 1.5 * FIRST_LOOK * len(schedule) * (VISIT_S + 0.01))
    dice = random.Random(arena.seed)  # noqa: S311 - an order against drift, not a secret
    lap = 0
    while not broken and lap < MOST_LAPS:
        dice.shuffle(schedule)
        broken = _lap(arena, schedule, sizes, tally)
        lap += 1
        if lap < CRAWL_VISITS or broken:
            continue
        # Clocks differ between ranks: rank 0's says for all how late it is.
        spent = float(str(arena.gang.gather(time.monotonic() - began)[0]))
        precise = lap >= FIGURE_LAPS or (lap >= FIRST_LOOK and spent > FIGURE_S)
        done = precise and judged.enough(plan, arena.nodes, tally.cells(), arena.gang.backend)
        more = SUSPICION if judged.suspicious(plan, arena.nodes, tally.cells(), arena.gang.backend) else 1.0
        if done or spent > more * limit_s:
            break
    if not broken and tally.cells():
        broken = _alone(arena, plan, sizes, tally)
    return {
        "kind": "tournament",
        "phase": phase,
        **_common(arena, sizes.usual, began, broken),
        "cells": [_plain(cell) for cell in tally.cells()],
    }


def search(arena: Arena, plan: Plan) -> Line:
    """`link_search` evidence: rounds of groups, each group a ring, as `groups.locate` asks for them."""
    began, done = time.monotonic(), list[SearchRound]()
    pilot = [pairs for half in _directions(rounds(len(arena.nodes))[:1]) for pairs in half]
    sizes, broken = _message_bytes(arena, plan, pilot, Tally())
    declared = judged.reference(plan, arena.gang.backend).gbit_s
    asked = groups.locate(arena.nodes)
    trial = next(asked)
    while not broken:
        place = {node: index for index, node in enumerate(arena.nodes)}
        pairs = [(place[a], place[b]) for group in trial.groups for a, b in ring(group)]
        tally = Tally()
        for _ in range(SEARCH_VISITS):
            broken = broken or _lap(arena, [pairs], sizes, tally)
        done.append(SearchRound(purpose=trial.purpose, groups=trial.groups, cells=tally.cells()))
        if broken:
            break
        try:
            trial = asked.send(judged.trial_answers(done, trial, declared))
        except StopIteration:
            break
    return {
        "kind": "link_search",
        **_common(arena, sizes.usual, began, broken),
        "rounds": [_plain(item) for item in done],
    }


def _common(arena: Arena, size: int, began: float, broken: Sequence[Broken]) -> Line:
    return {
        "nodes": list(arena.nodes),
        "interface": arena.interface,
        "backend": arena.gang.backend,
        "streams": arena.streams,
        "message_bytes": size,
        "seconds": time.monotonic() - began,
        "counter": _counter(arena.gang),
        "broken": [_plain(item) for item in broken],
    }


def _counter(gang: Gang) -> str:
    if not gang.cuda:
        return "tcp" if counters.tcp() is not None else "none"
    return "efa" if any(port.retransmitted is not None for port in counters.ports().values()) else "none"


def _directions(pairings: Sequence[Sequence[Pair]]) -> tuple[list[list[Pair]], list[list[Pair]]]:
    forward = [list(pairs) for pairs in pairings]
    return forward, [[(b, a) for a, b in pairs] for pairs in forward]


def _message_bytes(
    arena: Arena, plan: Plan, schedule: Sequence[Sequence[Pair]], tally: Tally
) -> tuple[Sizes, list[Broken]]:
    """Bytes with which a visit takes about VISIT_S at the rate of the fastest pair, found in a pilot lap.

    The pilot also opens connections and fills caches. A declared rate goes before the pilot's, which the
    first fill of a token bucket flatters. Pairs that hardly move, in every one of `CRAWL_VISITS` pilots, get
    short messages; their first pilot stays in the record, because a bucket may flatter those.
    """
    lap, rates, broken = _pilot(arena, schedule, Sizes(usual=PILOT_BYTES))
    fastest = max(rates.values(), default=1.0)
    declared = judged.reference(plan, arena.gang.backend).gbit_s
    rate = fastest if declared is None else declared
    usual = int(rate * 1e9 / 8 / arena.streams * VISIT_S / MESSAGES)
    slow = CRAWL * min(rate, fastest)
    crawling = frozenset(pair for pair, found in rates.items() if found < slow)
    for _ in range(CRAWL_VISITS - 1):
        if broken or not crawling:
            break
        again = Sizes(usual=PILOT_BYTES, crawling=crawling)  # at once, while the bucket is empty
        _, rates, broken = _pilot(arena, _only(arena, schedule, crawling), again)
        crawling = frozenset(pair for pair in crawling if rates.get(pair, 0.0) < slow)
    tally.add(half for half in lap if (half.sender, half.receiver) in crawling)
    return Sizes(usual=min(LARGEST, max(SMALLEST, usual)), crawling=crawling), broken


def _pilot(
    arena: Arena, schedule: Sequence[Sequence[Pair]], sizes: Sizes
) -> tuple[list[Half], dict[Pair, float], list[Broken]]:
    """One visit of every pair: its halves, Gb/s by pair of nodes, and what broke."""
    halves, broken = _exchange(arena, schedule, sizes)
    tally = Tally()
    tally.add(halves)
    return halves, {(cell.sender, cell.receiver): cell.gbit_s[0] for cell in tally.cells()}, broken


def _only(
    arena: Arena, schedule: Sequence[Sequence[Pair]], chosen: frozenset[Pair]
) -> Sequence[Sequence[Pair]]:
    """The rounds of a schedule (of places) with none but the chosen pairs (of nodes)."""
    kept = [[(a, b) for a, b in pairs if (arena.nodes[a], arena.nodes[b]) in chosen] for pairs in schedule]
    return [pairs for pairs in kept if pairs]


def _lap(
    arena: Arena, schedule: Sequence[Sequence[Pair]], sizes: Sizes, tally: Tally, *, serial: bool = False
) -> list[Broken]:
    """One visit of every pair of every round goes into the tally; what broke, on every rank alike."""
    halves, broken = _exchange(arena, schedule, sizes)
    tally.add(halves, serial=serial)
    return broken


def _exchange(
    arena: Arena, schedule: Sequence[Sequence[Pair]], sizes: Sizes
) -> tuple[list[Half], list[Broken]]:
    """Both halves of the visits of a schedule of places (not nodes), gathered from all ranks."""
    mine = Lap()
    if arena.wire is not None:
        _visit_all(arena, arena.wire, schedule, sizes, mine)
    laps = [item for item in arena.gang.gather(mine) if isinstance(item, Lap)]
    return [half for lap in laps for half in lap.halves], [lap.broken for lap in laps if lap.broken]


def _visit_all(arena: Arena, wire: Wire, schedule: Sequence[Sequence[Pair]], sizes: Sizes, mine: Lap) -> None:
    place = arena.nodes.index(arena.gang.node)
    to: int | None = None
    source: int | None = None
    try:
        for pairs in schedule:
            to = next((b for a, b in pairs if a == place), None)
            source = next((a for a, b in pairs if b == place), None)
            heartbeat.own().beat()
            wire.meet()
            if to is not None or source is not None:
                mine.halves += _visit(arena, wire, to, source, sizes.of(arena, to, source))
            else:
                wire.meet()
    except RuntimeError as error:
        mine.broken = Broken(
            node=arena.gang.node,
            sender=None if source is None else arena.nodes[source],
            receiver=None if to is None else arena.nodes[to],
            message=_first_line(error),
        )


def _visit(arena: Arena, wire: Wire, to: int | None, source: int | None, size: int) -> list[Half]:
    """Transfer and read the counters before and after; one half per direction."""
    before, waits, began = _reading(arena), counters.waits_for_cpus(), time.perf_counter()
    seconds = wire.transfer(to, source, MESSAGES, size)
    elapsed, waited = time.perf_counter() - began, counters.longest_wait(waits, counters.waits_for_cpus())
    wire.meet()  # a sender is done before its data has left: only now has everything been counted
    after = _reading(arena)
    own = arena.gang.node
    common = Half(
        sender=own,
        receiver=own,
        sending=True,
        seconds=None,
        payload_bits=MESSAGES * size * 8,
        elapsed=elapsed,
        waited=waited,
    )
    moved = {key: _difference(before, after, key) for key in before}
    found = []
    if to is not None:
        sent = replace(
            common, receiver=arena.nodes[to], moved_bytes=moved["sent"], segments=moved["segments"]
        )
        found.append(replace(sent, retransmitted=moved["retransmitted"], spurious=moved["spurious"]))
    if source is not None:
        arrived = replace(common, sender=arena.nodes[source], sending=False, seconds=seconds)
        found.append(replace(arrived, moved_bytes=moved["received"]))
    return found


Reading = dict[str, int | None]


def _reading(arena: Arena) -> Reading:
    """The counters of this node that a transfer moves; unknown ones are None."""
    found: Reading = dict.fromkeys(("segments", "retransmitted", "spurious", "sent", "received"))
    if arena.gang.cuda:
        ports = counters.ports().values()
        found["segments"] = _total(port.tx_packets for port in ports)
        found["retransmitted"] = _total(port.retransmitted for port in ports)
        return found
    segments = counters.tcp()
    if segments is not None:
        found |= {
            "segments": segments.sent,
            "retransmitted": segments.retransmitted,
            "spurious": segments.spurious,
        }
    moved = None if arena.interface is None else counters.bytes_of(arena.interface)
    if moved is not None:
        found["received"], found["sent"] = moved
    return found


def _total(values: Iterator[int | None]) -> int | None:
    known = list(values)
    return sum(v for v in known if v is not None) if known and None not in known else None


def _difference(before: Reading, after: Reading, key: str) -> int | None:
    old, new = before[key], after[key]
    return None if old is None or new is None else max(0, new - old)


def _alone(arena: Arena, plan: Plan, sizes: Sizes, tally: Tally) -> list[Broken]:
    """Measure the worst cell of every accusation with nothing else on the wire."""
    found = judged.assess(plan, arena.nodes, tally.cells(), arena.gang.backend)
    if len(arena.nodes) <= ALONE_AT_MOST:
        return []
    broken: list[Broken] = []
    for blame in found.attribution.accused[:ACCUSED_AT_MOST]:
        a, b = judged.worst_cell(blame, found.scores)
        pair = (arena.nodes.index(a), arena.nodes.index(b))
        visits = CRAWL_VISITS if (a, b) in sizes.crawling else SERIAL_VISITS
        for _ in range(visits):
            broken = broken or _lap(arena, [[pair]], sizes, tally, serial=True)
    return broken


def _plain(record: Cell | SearchRound | Broken) -> Line:
    return asdict(record)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
