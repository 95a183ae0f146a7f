"""Records of machine types and prices, and rates that both clouds share (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

from infra.catalog.fact import DatedPrice
from smoke_training.expected.tables import shipped
from trainstack.advice.assumptions import assumed

Cloud = Literal["aws", "gcp"]
Market = Literal["on_demand", "spot", "flex_start"]
_BITS = 8


@dataclass(frozen=True)
class Machine:
    """One machine type with whole GPUs."""

    cloud: Cloud
    name: str
    gpu: str
    gpus: int
    memory_gib: float
    """Memory of one GPU."""
    tflops: float | None
    """Dense 16-bit rate of one GPU; None: unknown."""
    inside_gb_s: float | None
    """Bus bandwidth between its GPUs; None: unknown, or one GPU."""
    between_gb_s: float | None
    """Bus bandwidth between such machines; None: unknown, or without a network for it."""
    ways: tuple[str, ...] | None = None
    """Ways to buy it; None: no source says."""


@dataclass(frozen=True)
class Price:
    """US dollars for an hour of a machine."""

    usd: float
    region: str
    market: Market
    source: DatedPrice
    """The source that has to be renewed first."""
    most_h: float | None = None
    """Hours after which the cloud ends the machine; None: no limit."""


class MachineTypes(Protocol):
    """The machine types of one cloud."""

    def machines(self) -> Iterator[Machine]:
        """The machine types with whole GPUs."""

    def regions(self) -> tuple[str, ...]:
        """The regions in the catalog."""

    def price(self, name: str, region: str, market: Market) -> Price | None:
        """The hourly price of a machine type."""


def network_gb_s(gbit_s: float) -> float:
    """The assumed usable rate of a network."""
    return gbit_s / _BITS * assumed("network_share")


@cache
def inside_gb_s() -> dict[str, float]:
    """Bus bandwidth inside a machine type, in a ring: the value that its validation expects, too."""
    return {row.instance_type: row.inside.ring_gb_s for row in shipped().machines if row.inside}
