"""Price of a node-hour of a pool on AWS, and the GPUs of a node."""

from infra.catalog.aws.jobs import jobs
from infra.cost.aws.cluster import node_price
from infra.cost.aws.jobs import job_hour_usd
from infra.cost.model import NodeRate
from infra.stackspec.layouts import JobMachineSpec, PoolSpec
from infra.stackspec.purchases import OnDemand
from infra.stackspec.rules.aws.cluster import offered_gpus
from infra.stackspec.stack import StackSpec


def node_rate(spec: StackSpec, pool: PoolSpec) -> NodeRate | None:
    """The price of a node of a pool as it is bought; None without a source."""
    found = node_price(pool, spec.region)
    return NodeRate(found.usd_per_hour_expected, found) if found else None


def node_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, shares of GPUs included; 0 for machines without GPUs."""
    return offered_gpus(spec, pool)


def job_rate(machine: JobMachineSpec, region: str, kind: str) -> NodeRate | None:
    """The price of an hour of a machine on demand, with its volume; None for other kinds.

    No price list has SageMaker's spot prices, and the fee of a training plan is that of its offer.
    """
    listed = machine.model_copy(update={"purchase": OnDemand(kind="on_demand")})
    price, usd = jobs.price(machine.machine, region), job_hour_usd(listed, region)
    return NodeRate(usd, price) if price and usd is not None and kind == "on_demand" else None


def job_gpus(machine: str) -> int:
    """GPUs of a machine of SageMaker; 0 without any, or unknown."""
    known = jobs.machines.get(machine)
    return known.gpus if known else 0
