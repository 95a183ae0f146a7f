"""Price of a node-hour of a pool on AWS, and the GPUs of a node."""

from infra.cost.aws.cluster import node_price
from infra.cost.model import NodeRate
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.rules.aws.cluster import offered_gpus
from infra.stackspec.stack import StackSpec


def node_rate(spec: StackSpec, pool: PoolSpec) -> NodeRate | None:
    """The price of a node of a pool as it is bought; None without a source."""
    found = node_price(pool, spec.region)
    return NodeRate(found.usd_per_hour_expected, found) if found else None


def node_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, shares of GPUs included; 0 for machines without GPUs."""
    return offered_gpus(spec, pool)
