"""Price of a node-hour of a pool on Google Cloud, and the GPUs of a node."""

from infra.catalog.gcp import facts
from infra.cost.gcp.cluster import pool_price
from infra.cost.model import NodeRate
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import PoolSpec
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
