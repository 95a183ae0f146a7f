"""Machine types of the catalogs, with GPUs, rates and hourly prices (pure).

Values without a source are None, and no estimate uses them.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from trainstack.advice.aws import machines as aws
from trainstack.advice.gcp import machines as gcp
from trainstack.advice.machine import Cloud, Machine, MachineTypes, Market, Price

__all__ = ["CLOUDS", "Cloud", "Machine", "Market", "Price", "machines", "price_of", "regions"]

_MODULES: Final[Mapping[Cloud, MachineTypes]] = {"aws": aws, "gcp": gcp}
CLOUDS: Final[tuple[Cloud, ...]] = ("aws", "gcp")


def machines(cloud: Cloud) -> Iterator[Machine]:
    """The machine types of a cloud with whole GPUs, in the order of the catalog."""
    return _MODULES[cloud].machines()


def regions(cloud: Cloud) -> tuple[str, ...]:
    """The regions of a cloud in the catalog."""
    return _MODULES[cloud].regions()


def price_of(machine: Machine, region: str, market: Market) -> Price | None:
    """The price of a machine; None where it is not offered, or has no known price."""
    return _MODULES[machine.cloud].price(machine.name, region, market)
