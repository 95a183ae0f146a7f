"""Price of a node-hour of a pool on Google Cloud, and the GPUs of a node."""

from typing import cast, get_args

from infra.catalog.gcp import facts
from infra.catalog.gcp.jobs import Kind, jobs
from infra.catalog.gcp.prices import node_price
from infra.cost.gcp.cluster import pool_price
from infra.cost.model import NodeRate
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import JobMachineSpec, PoolSpec
from infra.stackspec.rules.gcp.cluster import offered_gpus
from infra.stackspec.stack import StackSpec


def node_rate(spec: StackSpec, pool: PoolSpec) -> NodeRate | None:
    """The price of a node of a pool as it is bought; None without a source."""
    listed = pool_price(pool, spec.region)
    return NodeRate(listed.expected, listed.renew) if listed else None


def node_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, parts of shared GPUs included; 0 for machines without GPUs."""
    known = facts.machine_types.get(pool.machine)
    if known is None or not isinstance(spec.on, GcpSpec):
        return 0
    return offered_gpus(known, spec.on.pools.get(pool.name, GcpPoolSpec()))


def job_rate(machine: JobMachineSpec, region: str, kind: str) -> NodeRate | None:
    """The price of an hour of a machine with the service's fee; of a reserved one that of the reservation.

    Compute Engine bills a reservation at the price on demand, used or not, and the service its fee for jobs
    alone.
    """
    if kind == "reserved":
        listed = node_price(machine.machine, region, "on_demand")
        return NodeRate(listed.expected, listed.renew) if listed else None
    found = jobs.price(machine.machine, region, cast("Kind", kind)) if kind in get_args(Kind) else None
    return NodeRate(found.usd, found.renew) if found else None


def job_gpus(machine: str) -> int:
    """GPUs of a machine of Vertex AI; 0 without any, or unknown."""
    known = jobs.machines.get(machine)
    return known.gpus if known else 0
