"""Price of a node-hour of a pool, as it is bought or as it could be, and the GPUs of a node."""

from dataclasses import dataclass
from typing import Literal

from infra.catalog.aws import facts as aws_facts
from infra.catalog.fact import DatedPrice
from infra.catalog.gcp import facts as gcp_facts
from infra.cost.aws.cluster import node_price
from infra.cost.gcp.cluster import pool_price
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.purchases import CapacityBlock, OnDemand, Spot
from infra.stackspec.rules.gcp.cluster import offered_gpus
from infra.stackspec.stack import StackSpec

Market = Literal["own", "on_demand", "spot", "block"]
"""`own`: as the pool is bought. `block`: a Capacity Block, or a reservation in calendar mode."""


@dataclass(frozen=True)
class NodeRate:
    """US dollars per node-hour: the planning figure, and the row of the catalog with its source and date."""

    usd: float
    price: DatedPrice


def node_rate(spec: StackSpec, pool: PoolSpec, market: Market = "own") -> NodeRate | None:
    """The price of a node of a pool in a market; None without a source: unknown, never free."""
    bought = {
        "own": pool.purchase,
        "on_demand": OnDemand(kind="on_demand"),
        "spot": Spot(kind="spot"),
        "block": CapacityBlock(kind="block", id=""),
    }[market]
    asked = pool.model_copy(update={"purchase": bought})
    if spec.cloud == "aws":
        found = node_price(asked, spec.region)
        return NodeRate(found.usd_per_hour_expected, found) if found else None
    if spec.cloud == "gcp":
        listed = pool_price(asked, spec.region)
        return NodeRate(listed.expected, listed.renew) if listed else None
    return None


def node_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, parts of shared GPUs included; 0 for machines without GPUs."""
    match spec.on:
        case AwsSpec():
            machine = aws_facts.instance_types.get(pool.machine)
            return machine.accelerator_count if machine else 0
        case GcpSpec() as google:
            known = gcp_facts.machine_types.get(pool.machine)
            return offered_gpus(known, google.pools.get(pool.name, GcpPoolSpec())) if known else 0
    return 0
