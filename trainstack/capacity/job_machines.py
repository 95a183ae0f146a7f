"""Machines of a stack without a cluster as capacity: what plans and reservations commit, and prices."""

import datetime
from collections.abc import Iterator

from infra.cost.rates import Market, job_gpus, job_rate
from infra.stackspec.layouts import JobMachineSpec
from infra.stackspec.stack import StackSpec
from trainstack.capacity.classes import GpuHourRate, PoolCapacity
from trainstack.ledger.managed import pool_name
from trainstack.ledger.periods import ALWAYS

OVERRIDES = ("on_demand", "spot")
"""Ways to buy that a job may choose instead of that of its machine."""


def job_pools(
    spec: StackSpec, machines: tuple[JobMachineSpec, ...], on: datetime.date
) -> Iterator[PoolCapacity]:
    """The machines with GPUs, each followed by the other way to buy that its jobs may choose."""
    for index, one in enumerate(machines):
        if not (gpus := job_gpus(spec.cloud, one.machine)):
            continue
        kind = one.purchase.kind
        for bought in (kind, *(other for other in OVERRIDES if kind in OVERRIDES and other != kind)):
            own = bought == kind
            rates: dict[Market, GpuHourRate | None] = {
                "own": _rate(spec, one, bought, gpus, on),
                "on_demand": _rate(spec, one, "on_demand", gpus, on),
                "spot": _rate(spec, one, "spot", gpus, on),
                "block": None,
            }
            yield PoolCapacity(
                pool=pool_name(one, bought),
                path=f"layout.machines[{index}]",
                flavor=pool_name(one, bought),
                machine=one.machine,
                cloud=spec.cloud,
                region=spec.region,
                kind=bought,
                reservation=one.reservation if own else None,
                node_gpus=gpus,
                shares=1,
                max_nodes=None,
                # Without the cloud's description, a reservation has at least the machines of its largest job.
                nodes=one.max_nodes if own and one.reservation else 0,
                period=ALWAYS,
                rates=rates,
                guarantees={},
            )


def _rate(
    spec: StackSpec, machine: JobMachineSpec, kind: str, gpus: int, on: datetime.date
) -> GpuHourRate | None:
    found = job_rate(spec, machine, kind)
    if found is None:
        return None
    return GpuHourRate(found.usd / gpus, found.price.source, found.price.date, found.price.old(on))
