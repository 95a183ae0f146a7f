"""Machine types and prices of Google Cloud."""

from collections.abc import Iterator

from infra.catalog.gcp import facts
from infra.catalog.gcp.prices import node_price
from trainstack.advice.machine import Machine, Market, Price, inside_gb_s, network_gb_s

_FABRICS = ("rdma", "tcpxo")  # with a known share of the NICs' rate


def machines() -> Iterator[Machine]:
    """The machine types with whole GPUs, in the order of the catalog."""
    for row in facts.machine_types.values():
        gpu = facts.accelerators[row.accelerator]
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
            inside_gb_s=inside_gb_s().get(row.name),
            between_gb_s=network_gb_s(network) if network else None,
        )


def regions() -> tuple[str, ...]:
    """The regions in the catalog."""
    return tuple(facts.regions)


def price(name: str, region: str, market: Market) -> Price | None:
    """The hourly price of a machine type; None where it is not offered, or the price is unknown."""
    if not facts.offering_zones(name, region):
        return None
    found = node_price(name, region, market)
    return None if found is None else Price(found.expected, region, market, found.renew)
