"""Every rail by itself: its state, whether it reaches all nodes, how long an all-reduce over it takes.

A rail that is down is found by its state and by plain connections before anything can hang on it. Only a
rail that answers everywhere gets a gloo group of its own. A rail whose all-reduce looks slow is looked at
pair by pair. On accelerators one nccl group per local rank stands for a rail, because each rank has its own
adapter ("MOD g" in nccl-tests' words; untested on hardware).
"""

import select
import socket
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import torch
import torch.distributed as dist

from smoke_training.evidence.links import Rail, RailEnd
from smoke_training.judges import wires as judged
from smoke_training.probes.context import Context, Line
from smoke_training.probes.gang import Gang
from smoke_training.probes.pairs import Arena, nothing_between, open_arena, tournament
from smoke_training.probes.wires import Wire, has_seat
from smoke_training.runtime import counters, heartbeat

REACH_S = 2.0  # connections on a working rail take milliseconds
REPETITIONS = 5
ALL_REDUCE_S = 0.06
SMALL_BYTES = 64 << 10
STARVED_S = (
    0.2  # a small all-reduce that takes as long goes over a starved rail: larger ones would take minutes
)
SUSPICIOUS = 0.6  # of the declared rate, or of the best rail: an all-reduce over gloo reaches 0.7 and more
LOOK_CLOSER_S = 3.0
GPU_BYTES = 1 << 28

Answers = Mapping[str, bool]


def measure(context: Context) -> Iterator[Line]:
    """`rails` evidence, and a `tournament` for every rail that looks slow and was not in the pairs phase."""
    gang, plan = context.gang, context.plan
    reason = nothing_between(gang, plan)
    if reason is not None:
        yield {"kind": "pairs_skipped", "reason": reason}
        return
    if gang.cuda:
        yield {"kind": "rails", "backend": gang.backend, "rails": [asdict(rail) for rail in _by_rank(gang)]}
        return
    found: list[Rail] = []
    arenas: dict[str, Arena] = {}
    for name in plan.rails:
        rail, arena = _by_interface(context, name)
        found.append(rail)
        if arena is not None:
            arenas[name] = arena
    yield {"kind": "rails", "backend": gang.backend, "rails": [asdict(rail) for rail in found]}
    for name in _suspects(found, judged.reference(plan, gang.backend).gbit_s, len({*_nodes(gang)})):
        if name != plan.rails[0] or "pairs" not in plan.chosen_phases:
            yield {**tournament(arenas[name], plan, "rails", LOOK_CLOSER_S)}


def _suspects(found: Sequence[Rail], declared: float | None, nodes: int) -> list[str]:
    """Rails that answered everywhere and look slow."""
    rates = {rail.name: rate for rail in found if (rate := wire_rate(rail, nodes)) is not None}
    wanted = declared if declared is not None else max(rates.values(), default=0.0)
    return [name for name, rate in rates.items() if rate < SUSPICIOUS * wanted]


def wire_rate(rail: Rail, nodes: int) -> float | None:
    """Gb/s that each node's interface carries each way during a ring all-reduce: 2(k-1)/k S over t."""
    if not rail.seconds or rail.size_bytes is None:
        return None
    return 2 * (nodes - 1) / nodes * rail.size_bytes * 8 / statistics.median(rail.seconds) / 1e9


def _nodes(gang: Gang) -> list[int]:
    return sorted({int(str(node)) for node in gang.gather(gang.node)})


def _by_interface(context: Context, name: str) -> tuple[Rail, Arena | None]:
    """One rail: states, connections, and an all-reduce if every node answers every other."""
    gang, nodes = context.gang, _nodes(context.gang)
    ends = _ends(gang, name, nodes)
    if not all(_complete(end, nodes) for end in ends):
        reason = "not every node answers every other over it"
        return Rail(name=name, ends=ends, size_bytes=None, seconds=(), error=reason), None
    arena, errors = open_arena(gang, context.plan, f"rail-{name}", name, nodes)
    if arena is None:
        return Rail(name=name, ends=ends, size_bytes=None, seconds=(), error="; ".join(errors)), None
    declared = judged.reference(context.plan, gang.backend).gbit_s or 1.0
    size = max(1 << 20, min(1 << 26, int(declared * 1e9 / 8 * ALL_REDUCE_S / 2))) // 4 * 4
    seconds, moved, error = _all_reduces(arena, arena.wire, name, SMALL_BYTES)
    if error is None and min(seconds) < STARVED_S:
        seconds, moved, error = _all_reduces(arena, arena.wire, name, size)
    else:
        size = SMALL_BYTES
    counted = {end.node: moved.get(end.node) for end in ends}
    return Rail(
        name=name,
        ends=tuple(_with_bytes(end, counted[end.node]) for end in ends),
        size_bytes=size,
        seconds=tuple(seconds),
        error=error,
    ), None if error else arena


def _complete(end: RailEnd, nodes: Sequence[int]) -> bool:
    return all(end.reached.get(str(node), False) for node in nodes if node != end.node)


def _with_bytes(end: RailEnd, moved: tuple[int, int] | None) -> RailEnd:
    received, sent = moved or (None, None)
    return RailEnd(**{**asdict(end), "tx_bytes": sent, "rx_bytes": received})


def _ends(gang: Gang, name: str, nodes: Sequence[int]) -> tuple[RailEnd, ...]:
    """State and reach of every node's interface. Each node listens on it while all of them connect."""
    speaker = has_seat(gang)
    state = counters.interfaces().get(name) if speaker else None
    listener = _listen(state.address) if state and state.address else None
    port = listener.getsockname()[1] if listener else None
    offers = gang.gather((gang.node, state.address if state else None, port) if speaker else None)
    places = {item[0]: (item[1], item[2]) for item in offers if isinstance(item, tuple)}
    reached: Answers = {}
    if speaker:
        reached = _reach(state.address if state else None, gang.node, places, nodes)
    found = gang.gather(_end(gang.node, state, reached) if speaker else None)  # all have tried: now close
    if listener is not None:
        listener.close()
    return tuple(sorted((item for item in found if isinstance(item, RailEnd)), key=lambda end: end.node))


def _end(node: int, state: counters.Interface | None, reached: Answers) -> RailEnd:
    return RailEnd(
        node=node,
        exists=state is not None,
        up=state.up if state else None,
        running=state.running if state else None,
        carrier=state.carrier if state else None,
        operstate=state.operstate if state else None,
        speed_mbit_s=state.speed_mbit_s if state else None,
        carrier_changes=state.carrier_changes if state else None,
        address=state.address if state else None,
        reached=dict(reached),
        tx_bytes=None,
        rx_bytes=None,
    )


def _listen(address: str) -> socket.socket | None:
    """A port on this rail's address; the kernel accepts connections for it, nobody else has to."""
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        end.bind((address, 0))
        end.listen(1024)
    except OSError:
        end.close()
        return None
    return end


def _reach(
    own: str | None, node: int, places: Mapping[int, tuple[str | None, int | None]], nodes: Sequence[int]
) -> Answers:
    """Which nodes answer from this node's address of the rail; all at once, within REACH_S.

    Above 16 nodes only those at a power-of-two distance are asked: enough to tell who is silent.
    """
    asked = [peer for peer in nodes if peer != node]
    if len(nodes) > 16:
        place = nodes.index(node)
        asked = [nodes[(place + (1 << step)) % len(nodes)] for step in range(len(nodes).bit_length() - 1)]
    waiting: dict[int, tuple[int, socket.socket]] = {}
    found = dict.fromkeys((str(peer) for peer in nodes if peer not in asked and peer != node), True)
    for peer in asked:
        address, port = places.get(peer, (None, None))
        found[str(peer)] = False
        if own is not None and address is not None and port is not None:
            end = _connect(own, address, port)
            if end is not None:
                waiting[end.fileno()] = (peer, end)
    deadline = time.monotonic() + REACH_S
    while waiting and (left := deadline - time.monotonic()) > 0:
        heartbeat.own().beat()
        _, ready, _ = select.select([], [end for _, end in waiting.values()], [], left)
        for end in ready:
            peer, _ = waiting.pop(end.fileno())
            found[str(peer)] = end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            end.close()
    for _, end in waiting.values():
        end.close()
    return found


def _connect(own: str, address: str, port: int) -> socket.socket | None:
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    end.setblocking(False)
    try:
        end.bind((own, 0))
        end.connect_ex((address, port))
    except OSError:
        end.close()
        return None
    return end


def _all_reduces(
    arena: Arena, wire: Wire | None, name: str, size: int
) -> tuple[list[float], dict[int, tuple[int, int]], str | None]:
    """Seconds per repetition (maximum over nodes), (received, sent) bytes per node, and what went wrong."""
    seconds: list[float] = []
    moved: tuple[int, int] | None = None
    error = None
    if wire is not None:
        try:
            buffer = torch.ones(size // 4, dtype=torch.float32)
            wire.all_reduce(buffer)
            before = counters.bytes_of(name)
            for _ in range(REPETITIONS):
                heartbeat.own().beat()
                buffer.fill_(1.0)
                wire.meet()
                began = time.perf_counter()
                wire.all_reduce(buffer)
                seconds.append(time.perf_counter() - began)
            after = counters.bytes_of(name)
            if before and after:
                moved = (after[0] - before[0], after[1] - before[1])
        except RuntimeError as problem:
            error = f"node {arena.gang.node}: {str(problem).splitlines()[0][:300]}"
    rows = [
        item
        for item in arena.gang.gather((arena.gang.node, seconds, moved, error))
        if isinstance(item, tuple)
    ]
    errors = sorted({str(row[3]) for row in rows if row[3]})
    timed = [row[1] for row in rows if row[1]]
    slowest = [max(column) for column in zip(*timed, strict=False)] if timed and not errors else []
    return slowest, {row[0]: row[2] for row in rows if row[2]}, "; ".join(errors) or None


def _by_rank(gang: Gang) -> list[Rail]:
    """One all-reduce group per local rank index, one after the other (untested on hardware)."""
    places = [item for item in gang.gather((gang.node, gang.local_rank)) if isinstance(item, tuple)]
    nodes = sorted({node for node, _ in places})
    found = []
    for index in sorted({local for _, local in places}):
        members = [rank for rank, (_, local) in enumerate(places) if local == index]
        group = dist.new_group(members)
        mine: list[float] = []
        if gang.rank in members:
            buffer = torch.ones(GPU_BYTES // 4, dtype=torch.float32, device=gang.device)
            for repetition in range(2 * REPETITIONS):
                buffer.fill_(1.0)
                gang.sync()
                began = time.perf_counter()
                dist.all_reduce(buffer, group=group)
                gang.sync()
                if repetition >= REPETITIONS // 2:  # the first ones make the connections
                    mine.append(time.perf_counter() - began)
        rows = [item for item in gang.gather(mine) if isinstance(item, list) and item]
        ends = tuple(_end(node, None, {}) for node in nodes)
        slowest = tuple(max(column) for column in zip(*rows, strict=True))
        found.append(
            Rail(name=f"local rank {index}", ends=ends, size_bytes=GPU_BYTES, seconds=slowest, error=None)
        )
    return found
