"""Pools and machines with GPUs of a stack, with reservations as the cloud describes them."""

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from infra.cost.rates import Market
from infra.stackspec.layouts import JobMachineSpec, SmallLayout
from infra.stackspec.stack import StackSpec
from trainstack.capacity.classes import GpuHourRate, PoolCapacity, cluster_pools
from trainstack.capacity.job_machines import job_pools
from trainstack.capacity.reserved import ReservedCapacity
from trainstack.ledger.periods import HOUR

_AS_WRITTEN: Mapping[str, ReservedCapacity] = {}


def pools(
    spec: StackSpec, on: datetime.date, described: Mapping[str, ReservedCapacity] = _AS_WRITTEN
) -> tuple[PoolCapacity, ...]:
    """Pools and machines with GPUs, with prices as of a day; of a manager, those of all clusters.

    `described`: reservations by the path of their pool, where the cloud was read. Of one that several pools
    name, each has at most its `max_nodes`.
    """
    machines = managed_machines(spec)
    found = tuple(job_pools(spec, machines, on)) if machines else cluster_pools(spec, on)
    users = Counter(one.bought_at for one in found)
    return tuple(
        _as_described(one, read, on, shared=users[one.bought_at] > 1)
        if (read := described.get(one.path))
        else one
        for one in found
    )


def managed_machines(spec: StackSpec) -> tuple[JobMachineSpec, ...]:
    """Machines of a managed service; empty for stacks with nodes of their own."""
    return spec.layout.machines if isinstance(spec.layout, SmallLayout) else ()


def _as_described(
    pool: PoolCapacity, found: ReservedCapacity, on: datetime.date, *, shared: bool
) -> PoolCapacity:
    """The pool with nodes, times and fee of its reservation."""
    rates: Mapping[Market, GpuHourRate | None] = pool.rates
    hours = sum(
        one.nodes * (one.span.end - one.span.start) / HOUR
        for one in found.segments
        if one.span.start and one.span.end
    )
    if found.fee_usd is not None and hours:
        usd = found.fee_usd / hours / pool.node_gpus
        rates = {**rates, "own": GpuHourRate(usd, f"upfront fee of {found.id}", on, old=False)}
    most = pool.max_nodes if shared and pool.max_nodes is not None else found.nodes
    segments = tuple(replace(one, nodes=min(one.nodes, most)) for one in found.segments)
    return replace(pool, nodes=min(found.nodes, most), period=found.span, segments=segments, rates=rates)
