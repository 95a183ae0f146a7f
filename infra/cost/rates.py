"""Price of a node-hour of a pool, as it is bought or as it could be, and the GPUs of a node."""

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from infra.cost.aws import rates as aws
from infra.cost.gcp import rates as gcp
from infra.cost.model import NodeRate
from infra.stackspec.layouts import JobMachineSpec, PoolSpec
from infra.stackspec.purchases import CapacityBlock, OnDemand, Spot
from infra.stackspec.stack import StackSpec

Market = Literal["own", "on_demand", "spot", "block"]
"""`own`: as the pool is bought. `block`: a Capacity Block, or a reservation in calendar mode."""


class _Rates(Protocol):
    """Rates of a cloud."""

    def node_rate(self, spec: StackSpec, pool: PoolSpec, /) -> NodeRate | None:
        """As `node_rate`, of the pool as it is bought."""

    def node_gpus(self, spec: StackSpec, pool: PoolSpec, /) -> int:
        """As `node_gpus`."""

    def job_rate(self, machine: JobMachineSpec, region: str, kind: str, /) -> NodeRate | None:
        """As `job_rate`."""

    def job_gpus(self, machine: str, /) -> int:
        """As `job_gpus`."""


_OF_CLOUD: Final[Mapping[str, _Rates]] = {"aws": aws, "gcp": gcp}


def node_rate(spec: StackSpec, pool: PoolSpec, market: Market = "own") -> NodeRate | None:
    """The price of a node of a pool in a market; None without a source: unknown, never free."""
    bought = {
        "own": pool.purchase,
        "on_demand": OnDemand(kind="on_demand"),
        "spot": Spot(kind="spot"),
        "block": CapacityBlock(kind="block", id=""),
    }[market]
    return _OF_CLOUD[spec.cloud].node_rate(spec, pool.model_copy(update={"purchase": bought}))


def node_gpus(spec: StackSpec, pool: PoolSpec) -> int:
    """`nvidia.com/gpu` of a node of a pool, parts of shared GPUs included; 0 for machines without GPUs."""
    return _OF_CLOUD[spec.cloud].node_gpus(spec, pool)


def gpu_shares(spec: StackSpec, pool: PoolSpec) -> int:
    """Shares of each GPU of a pool: pods that take turns, or partitions; 1 for whole GPUs and without any."""
    whole = spec.model_copy(update={"on": spec.on.model_copy(update={"pools": {}})})
    return node_gpus(spec, pool) // max(1, node_gpus(whole, pool)) or 1


def job_rate(spec: StackSpec, machine: JobMachineSpec, kind: str) -> NodeRate | None:
    """The price of an hour of a machine of a managed service, by kind of purchase; None without a source."""
    return _OF_CLOUD[spec.cloud].job_rate(machine, spec.region, kind)


def job_gpus(cloud: str, machine: str) -> int:
    """GPUs of a machine of a managed service; 0 without any, or unknown."""
    return _OF_CLOUD[cloud].job_gpus(machine)
