"""Price of a node-hour of a pool on AWS, and the GPUs of a node."""

from infra.catalog.aws import facts
from infra.cost.aws.cluster import node_price
from infra.cost.model import NodeRate
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.stack import StackSpec


def node_rate(spec: StackSpec, pool: PoolSpec) -> NodeRate | None:
    """The price of a node of a pool as it is bought; None without a source."""
    found = node_price(pool, spec.region)
    return NodeRate(found.usd_per_hour_expected, found) if found else None


def node_gpus(_: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool; 0 for machines without GPUs."""
    machine = facts.instance_types.get(pool.machine)
    return machine.accelerator_count if machine else 0
