"""Machine types and prices of AWS."""

from collections.abc import Iterator

from infra.catalog.aws import facts
from trainstack.advice.machine import Machine, Market, Price, inside_gb_s, network_gb_s


def machines() -> Iterator[Machine]:
    """The machine types with whole GPUs, in the order of the catalog."""
    for row in facts.instance_types.values():
        gpu, inside = facts.accelerators[row.accelerator], inside_gb_s().get(row.name)
        yield Machine(
            cloud="aws",
            name=row.name,
            gpu=gpu.name,
            gpus=row.accelerator_count,
            memory_gib=row.accelerator_memory_mib / 1024,
            tflops=gpu.dense_bf16_tflops or gpu.dense_fp16_tflops,
            inside_gb_s=inside,
            # Without GPUDirect, EFA copies through the host at an unknown rate.
            between_gb_s=network_gb_s(row.network_gbps) if row.efa and inside else None,
        )


def regions() -> tuple[str, ...]:
    """The regions in the catalog."""
    return tuple(facts.regions)


def price(name: str, region: str, market: Market) -> Price | None:
    """The hourly price of a machine type; None where it is unknown."""
    row = None if market == "flex_start" else facts.price(name, region, market)
    return None if row is None else Price(row.usd_per_hour_expected, region, market, row)
