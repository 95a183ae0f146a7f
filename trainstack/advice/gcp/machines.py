"""Machine types and prices of Google Cloud."""

from collections.abc import Iterator

from infra.catalog.gcp import facts
from infra.catalog.gcp.pools import FLEX_START_DAYS
from infra.catalog.gcp.prices import node_price
from trainstack.advice.machine import Machine, Market, Price, inside_gb_s, network_gb_s

_FABRICS = ("rdma", "tcpxo")  # with a known share of the NICs' rate


def machines() -> Iterator[Machine]:
    """The machine types with whole GPUs, in the order of the catalog."""
    for row in facts.machine_types.values():
        gpu = facts.accelerators[row.accelerator]
        if row.gpu_share < 1 or gpu.memory_gib is None or row.refused:
            continue
        network = (row.nics or 0) * (row.nic_gbps or 0) if row.fabric in _FABRICS else 0
        yield Machine(
            cloud="gcp",
            name=row.name,
            gpu=gpu.title,
            gpus=row.count,
            memory_gib=gpu.memory_gib,
            tflops=gpu.dense_bf16_tflops,
            inside_gb_s=inside_gb_s().get(row.name),
            between_gb_s=network_gb_s(network) if network else None,
            ways=facts.ways(row.name),
        )


def regions() -> tuple[str, ...]:
    """The regions in the catalog."""
    return tuple(facts.regions)


def price(name: str, region: str, market: Market) -> Price | None:
    """The hourly price; None where the type is not offered or not sold so, or the price is unknown."""
    if not facts.offering_zones(name, region) or not facts.sold(name, market):
        return None
    found = node_price(name, region, market)
    if found is None:
        return None
    most_h = FLEX_START_DAYS * 24 if market == "flex_start" else None
    return Price(found.expected, region, market, found.renew, most_h)
