"""Every rail by itself: its state, whether it reaches all nodes, how long an all-reduce over it takes.

A rail that is down is found by its state and by plain connections before anything can hang on it. Only a
rail that answers everywhere gets a gloo group of its own. A rail whose all-reduce looks slow is looked at
pair by pair. On accelerators one nccl group per local rank stands for a rail, because each rank has its own
adapter ("MOD g" in nccl-tests' words; untested on hardware).
"""

import time
from collections.abc import Iterator
from dataclasses import asdict

import torch
import torch.distributed as dist

from smoke_training.evidence.links import Rail, RailEnd
from smoke_training.judges.network import rails
from smoke_training.judges.network import wires as judged
from smoke_training.probes.context import Context, Line
from smoke_training.probes.group import Gang
from smoke_training.probes.network import reach
from smoke_training.probes.network.pairs import Arena, nothing_between, open_arena, tournament
from smoke_training.probes.network.wires import Wire, has_seat
from smoke_training.runtime import counters, heartbeat

REPETITIONS = 5
ALL_REDUCE_S = 0.06
SMALL_BYTES = 64 << 10
STARVED_S = (
    0.2  # a small all-reduce that takes as long goes over a starved rail: larger ones would take minutes
)
LOOK_CLOSER_S = 3.0
GPU_BYTES = 1 << 28


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
    for name in rails.slow(rails.wire_rates(found), judged.reference(plan, gang.backend).gbit_s):
        if name != plan.rails[0] or "pairs" not in plan.chosen_phases:
            yield {**tournament(arenas[name], plan, "rails", LOOK_CLOSER_S)}


def _nodes(gang: Gang) -> list[int]:
    return sorted({int(str(node)) for node in gang.gather(gang.node)})


def _by_interface(context: Context, name: str) -> tuple[Rail, Arena | None]:
    """One rail: states, connections, and an all-reduce if every node answers every other."""
    gang, nodes = context.gang, _nodes(context.gang)
    ends = reach.ends(gang.gather, name, gang.node if has_seat(gang) else None, nodes)
    if not reach.complete(ends):
        return reach.silent(name, ends), None
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


def _with_bytes(end: RailEnd, moved: tuple[int, int] | None) -> RailEnd:
    received, sent = moved or (None, None)
    return RailEnd(**{**asdict(end), "tx_bytes": sent, "rx_bytes": received})


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
        ends = tuple(reach.end(node, None, {}) for node in nodes)
        slowest = tuple(max(column) for column in zip(*rows, strict=True))
        found.append(
            Rail(name=f"local rank {index}", ends=ends, size_bytes=GPU_BYTES, seconds=slowest, error=None)
        )
    return found
