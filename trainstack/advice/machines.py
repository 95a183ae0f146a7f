"""Machines that the catalogs know: their GPUs, how fast they compute and talk, the price of an hour (pure).

What no source says is None, and an estimate that would need it is not made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from infra.catalog.aws import facts as aws
from infra.catalog.fact import DatedPrice
from infra.catalog.gcp import facts as gcp
from infra.catalog.gcp.prices import node_price
from smoke_training.expected.tables import shipped
from trainstack.advice.assumptions import assumed

Cloud = Literal["aws", "gcp"]
Market = Literal["on_demand", "spot"]
CLOUDS: tuple[Cloud, ...] = ("aws", "gcp")
_BITS = 8
_FABRICS = ("rdma", "tcpxo")  # of Google Cloud, whose share of the NICs' rate is known


@dataclass(frozen=True)
class Machine:
    """One machine type with whole GPUs."""

    cloud: Cloud
    name: str
    gpu: str
    gpus: int
    memory_gib: float
    """Of one GPU."""
    tflops: float | None
    """Dense, in 16 bits, of one GPU; None: no source."""
    inside_gb_s: float | None
    """Bus bandwidth between its GPUs; None: unknown, or one GPU."""
    between_gb_s: float | None
    """Bus bandwidth between such machines; None: unknown, or none that is made for it."""


@dataclass(frozen=True)
class Price:
    """US dollars for an hour of a machine."""

    usd: float
    region: str
    market: Market
    source: DatedPrice
    """Of what it is made of, the row to be renewed first."""


def machines(cloud: Cloud) -> Iterator[Machine]:
    """All of a cloud that have whole GPUs, in the catalog's order."""
    return _of_aws() if cloud == "aws" else _of_gcp()


def regions(cloud: Cloud) -> tuple[str, ...]:
    """Where the catalog knows machines of a cloud."""
    return tuple((aws if cloud == "aws" else gcp).regions)


def price_of(machine: Machine, region: str, market: Market) -> Price | None:
    """The price of a machine; None where it is not offered there, or no source has one."""
    if machine.cloud == "aws":
        row = aws.price(machine.name, region, market)
        return None if row is None else Price(row.usd_per_hour_expected, region, market, row)
    if not gcp.offering_zones(machine.name, region):
        return None
    price = node_price(machine.name, region, market)
    return None if price is None else Price(price.expected, region, market, price.renew)


def _of_aws() -> Iterator[Machine]:
    for row in aws.instance_types.values():
        gpu, inside = aws.accelerators[row.accelerator], _inside().get(row.name)
        yield Machine(
            cloud="aws",
            name=row.name,
            gpu=gpu.name,
            gpus=row.accelerator_count,
            memory_gib=row.accelerator_memory_mib / 1024,
            tflops=gpu.dense_bf16_tflops or gpu.dense_fp16_tflops,
            inside_gb_s=inside,
            # Without GPUDirect, EFA copies through the host: at what rate no source says.
            between_gb_s=_network(row.network_gbps) if row.efa and inside else None,
        )


def _of_gcp() -> Iterator[Machine]:
    for row in gcp.machine_types.values():
        gpu = gcp.accelerators[row.accelerator]
        if row.gpu_share < 1 or gpu.memory_gib is None:
            continue
        network = (row.nics or 0) * (row.nic_gbps or 0) if row.fabric in _FABRICS else 0
        yield Machine(
            cloud="gcp",
            name=row.name,
            gpu=gpu.title,
            gpus=row.count,
            memory_gib=gpu.memory_gib,
            tflops=gpu.dense_bf16_tflops,
            inside_gb_s=_inside().get(row.name),
            between_gb_s=_network(network) if network else None,
        )


def _network(gbit_s: float) -> float:
    return gbit_s / _BITS * assumed("network_share")


@cache
def _inside() -> dict[str, float]:
    """GB/s of bus bandwidth inside a machine type, in a ring: what its validation is held against, too."""
    return {row.instance_type: row.inside.ring_gb_s for row in shipped().machines if row.inside}
