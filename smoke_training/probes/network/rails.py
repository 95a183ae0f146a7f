"""Measure every rail: its state, its reach of all nodes, the time of an all-reduce over it.

A rail that is down is found by its state and by plain connections before anything can hang on it. Only one
that reaches all nodes gets its own gloo group; one that looks slow is measured pair by pair. On accelerators
one nccl group per local rank stands for a rail ("MOD g" in nccl-tests' words; untested on hardware).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.distributed as dist

from smoke_training.evidence import Record
from smoke_training.evidence.links import PairsSkipped, Rail, Rails
from smoke_training.expected.links import reference
from smoke_training.probes.context import ProbeContext
from smoke_training.probes.group import Group
from smoke_training.probes.network import reach
from smoke_training.probes.network.arena import Arena, first_line, nothing_between, open_arena
from smoke_training.probes.network.endpoints import GlooEndpoint, has_endpoint
from smoke_training.probes.network.pairs import Rounds
from smoke_training.runtime import counters

REPETITIONS = 5
ALL_REDUCE_S = 0.06
SMALL_BYTES = 64 << 10
STARVED_S = 0.2  # duration of a small all-reduce: larger ones would take minutes
LOOK_CLOSER_S = 3.0
GPU_BYTES = 1 << 28


def measure(context: ProbeContext) -> Iterator[Record]:
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
            yield Rounds(context, arenas[name]).run("rails", LOOK_CLOSER_S)


def _by_interface(context: ProbeContext, name: str, arenas: dict[str, Arena]) -> Rail:
    """One rail: states, connections, and an all-reduce if every node reaches every other."""
    group, nodes = context.group, sorted(set(context.group.nodes()))
    ends = reach.ends(group.gather, name, group.node if has_endpoint(group) else None, nodes)
    if not reach.complete(ends):
        return reach.silent(name, ends)
    arena, errors = open_arena(group, f"rail-{name}", name)
    rail = Rail(name=name, ends=ends, size_bytes=None, seconds=(), error="; ".join(errors) or None)
    if arena is None:
        return rail
    declared = reference(context.plan, group.backend).gbit_s or 1.0
    rail = _all_reduced(rail, arena, SMALL_BYTES)
    if rail.error is None and min(rail.seconds) < STARVED_S:
        size = max(1 << 20, min(1 << 26, int(declared * 1e9 / 8 * ALL_REDUCE_S / 2))) // 4 * 4
        rail = _all_reduced(rail, arena, size)
    if rail.error is None:
        arenas[name] = arena
    return rail


def _all_reduced(rail: Rail, arena: Arena, size: int) -> Rail:
    """The rail with seconds per all-reduce (maximum over nodes), bytes of every node, and errors."""
    seconds: list[float] = []
    moved: tuple[int, int] | None = None  # received, sent
    error = None
    endpoint, group = arena.endpoint, arena.group
    if isinstance(endpoint, GlooEndpoint):
        try:
            buffer = torch.ones(size // 4, dtype=torch.float32)
            endpoint.all_reduce(buffer)
            before = counters.bytes_of(rail.name)
            for _ in range(REPETITIONS):
                group.beat()
                buffer.fill_(1.0)
                endpoint.meet()
                seconds.append(group.seconds(partial(endpoint.all_reduce, buffer)))
            after = counters.bytes_of(rail.name)
            if before and after:
                moved = (after[0] - before[0], after[1] - before[1])
        except RuntimeError as problem:
            error = f"node {group.node}: {first_line(problem)}"
    rows = group.gather((group.node, seconds, moved, error))
    errors = sorted({row[3] for row in rows if row[3] is not None})
    known = {node: moved for node, _, moved, _ in rows if moved}
    ends = []
    for end in rail.ends:
        received, sent = known.get(end.node, (None, None))
        ends.append(replace(end, rx_bytes=received, tx_bytes=sent))
    return replace(
        rail,
        ends=tuple(ends),
        size_bytes=size,
        seconds=() if errors else _slowest([row[1] for row in rows]),
        error="; ".join(errors) or None,
    )


def _slowest(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(max(column) for column in zip(*filter(None, rows), strict=False))


def _by_rank(group: Group) -> list[Rail]:
    """One all-reduce group per local rank index, one after the other."""
    places = group.gather((group.node, group.local_rank))
    found = []
    for index in sorted({local for _, local in places}):
        members = [rank for rank, (_, local) in enumerate(places) if local == index]
        rail = dist.new_group(members)
        mine: list[float] = []
        if group.rank in members:
            buffer = torch.ones(GPU_BYTES // 4, dtype=torch.float32, device=group.device)
            for _ in range(2 * REPETITIONS):
                buffer.fill_(1.0)
                mine.append(group.seconds(partial(dist.all_reduce, buffer, group=rail)))
        seconds = _slowest(group.gather(mine[REPETITIONS // 2 :]))  # the first ones open connections
        ends = tuple(reach.end(node, None, {}) for node in sorted({node for node, _ in places}))
        name = f"local rank {index}"
        found.append(Rail(name=name, ends=ends, size_bytes=GPU_BYTES, seconds=seconds, error=None))
    return found
