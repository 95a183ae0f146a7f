"""Every rail by itself: its state, whether it reaches all nodes, how long an all-reduce over it takes.

A rail that is down is found by its state and by plain connections before anything can hang on it. Only a
rail that answers everywhere gets a gloo group of its own. A rail whose all-reduce looks slow is looked at
pair by pair. On accelerators one nccl group per local rank stands for a rail, because each rank has its own
adapter ("MOD g" in nccl-tests' words; untested on hardware).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist

from smoke_training.evidence import Record
from smoke_training.evidence.links import PairsSkipped, Rail, RailEnd, Rails
from smoke_training.expected.links import reference
from smoke_training.probes.context import Context
from smoke_training.probes.group import Group
from smoke_training.probes.network import reach
from smoke_training.probes.network.arena import Arena, first_line, nothing_between, open_arena
from smoke_training.probes.network.endpoints import has_endpoint
from smoke_training.probes.network.pairs import tournament
from smoke_training.runtime import counters, heartbeat

REPETITIONS = 5
ALL_REDUCE_S = 0.06
SMALL_BYTES = 64 << 10
STARVED_S = 0.2  # a small all-reduce that takes as long: larger ones would take minutes
LOOK_CLOSER_S = 3.0
GPU_BYTES = 1 << 28


def measure(context: Context) -> Iterator[Record]:
    """`rails` evidence, and a `tournament` for every rail that looks slow and was not in the pairs phase."""
    group, plan = context.group, context.plan
    reason = nothing_between(group, plan)
    if reason is not None:
        yield PairsSkipped(reason=reason)
        return
    arenas: dict[str, Arena] = {}
    by_interface = (_by_interface(context, name, arenas) for name in plan.rails)
    found = _by_rank(group) if group.cuda else list(by_interface)
    yield Rails(backend=group.backend, rails=tuple(found))
    for name in context.sampling.slow_rails(found, group.backend):
        if name in arenas and (name != plan.rails[0] or "pairs" not in plan.chosen_phases):
            yield tournament(context, arenas[name], "rails", LOOK_CLOSER_S)


def _by_interface(context: Context, name: str, arenas: dict[str, Arena]) -> Rail:
    """One rail: states, connections, and an all-reduce if every node answers every other."""
    group, nodes = context.group, sorted(set(context.group.nodes()))
    ends = reach.ends(group.gather, name, group.node if has_endpoint(group) else None, nodes)
    if not reach.complete(ends):
        return reach.silent(name, ends)
    arena, errors = open_arena(group, f"rail-{name}", name)
    if arena is None:
        return Rail(name=name, ends=ends, size_bytes=None, seconds=(), error="; ".join(errors))
    declared = reference(context.plan, group.backend).gbit_s or 1.0
    size = max(1 << 20, min(1 << 26, int(declared * 1e9 / 8 * ALL_REDUCE_S / 2))) // 4 * 4
    done = _all_reduces(arena, name, SMALL_BYTES)
    if done.error is None and min(done.seconds) < STARVED_S:
        done = _all_reduces(arena, name, size)
    else:
        size = SMALL_BYTES
    if done.error is None:
        arenas[name] = arena
    return Rail(
        name=name,
        ends=tuple(_with_bytes(end, done.moved.get(end.node, (None, None))) for end in ends),
        size_bytes=size,
        seconds=done.seconds,
        error=done.error,
    )


@dataclass(frozen=True)
class Reduced:
    """Seconds per repetition (maximum over nodes), bytes by node, and what went wrong."""

    seconds: tuple[float, ...]
    moved: dict[int, tuple[int, int]]  # node -> received, sent
    error: str | None


def _all_reduces(arena: Arena, name: str, size: int) -> Reduced:
    seconds: list[float] = []
    moved: tuple[int, int] | None = None
    error = None
    endpoint, group = arena.endpoint, arena.group
    if endpoint is not None:
        try:
            buffer = torch.ones(size // 4, dtype=torch.float32)
            endpoint.all_reduce(buffer)
            before = counters.bytes_of(name)
            for _ in range(REPETITIONS):
                heartbeat.own().beat()
                buffer.fill_(1.0)
                endpoint.meet()
                began = time.perf_counter()
                endpoint.all_reduce(buffer)
                seconds.append(time.perf_counter() - began)
            after = counters.bytes_of(name)
            if before and after:
                moved = (after[0] - before[0], after[1] - before[1])
        except RuntimeError as problem:
            error = f"node {group.node}: {first_line(problem)}"
    rows = group.gather((group.node, seconds, moved, error))
    errors = sorted({row[3] for row in rows if row[3] is not None})
    timed = [row[1] for row in rows if row[1]]
    return Reduced(
        seconds=_slowest(timed) if timed and not errors else (),
        moved={row[0]: row[2] for row in rows if row[2]},
        error="; ".join(errors) or None,
    )


def _with_bytes(end: RailEnd, moved: tuple[int | None, int | None]) -> RailEnd:
    return replace(end, rx_bytes=moved[0], tx_bytes=moved[1])


def _slowest(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(max(column) for column in zip(*rows, strict=False))


def _by_rank(group: Group) -> list[Rail]:
    """One all-reduce group per local rank index, one after the other (untested on hardware)."""
    places = group.gather((group.node, group.local_rank))
    nodes = sorted({node for node, _ in places})
    found = []
    for index in sorted({local for _, local in places}):
        members = [rank for rank, (_, local) in enumerate(places) if local == index]
        members_only = dist.new_group(members)
        mine: list[float] = []
        if group.rank in members:
            buffer = torch.ones(GPU_BYTES // 4, dtype=torch.float32, device=group.device)
            for repetition in range(2 * REPETITIONS):
                buffer.fill_(1.0)
                group.sync()
                began = time.perf_counter()
                dist.all_reduce(buffer, group=members_only)
                group.sync()
                if repetition >= REPETITIONS // 2:  # the first ones make the connections
                    mine.append(time.perf_counter() - began)
        rows = [row for row in group.gather(mine) if row]
        ends = tuple(reach.end(node, None, {}) for node in nodes)
        name, seconds = f"local rank {index}", _slowest(rows)
        found.append(Rail(name=name, ends=ends, size_bytes=GPU_BYTES, seconds=seconds, error=None))
    return found
