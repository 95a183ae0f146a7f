"""Row types that the tables of every cloud share."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from infra.catalog.fact import DatedPrice, Fact, Name, Usd
from infra.catalog.tables import by_key, read_rows


class Hardware(NamedTuple):
    """Processors, memory in MiB and GPUs of a machine type."""

    cpus: int
    memory_mib: int
    gpus: int = 0
    accelerator: str = ""
    """Key of the GPU model in the table of accelerators; empty without GPUs."""


class ServicePrice(DatedPrice):
    """Dollars per `unit` of a service that is not an instance, such as `hour` or `GB-month`."""

    key: Name
    region: Name  # "*": the same in every commercial region
    unit: Name
    usd: Usd


class Duration(Fact):
    """Creation time of one resource of a Pulumi type, in seconds: one figure per published log.

    `where` are the inputs of the matching resources; without it, the row is for every resource of the type.
    """

    type: Name
    where: dict[Name, str | bool] = Field(default_factory=dict)
    seconds: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)

    @property
    def seconds_min(self) -> float:
        """The shortest."""
        return min(self.seconds)

    @property
    def seconds_expected(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def seconds_max(self) -> float:
        """The longest."""
        return max(self.seconds)

    def fits(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether the row matches a resource with these inputs."""
        return all(inputs.get(name) == value for name, value in self.where.items())


def read_durations(path: Path) -> Mapping[str, tuple[Duration, ...]]:
    """Creation times by Pulumi type, one row per kind of its resources. Raises CatalogError."""
    rows = read_rows(path, "duration", Duration)
    kinds = by_key(rows, lambda row: (row.type, tuple(row.where.items())), path.name)
    return {token: tuple(kinds[kind] for kind in kinds if kind[0] == token) for token, _ in kinds}


def per_region(row: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per region of the table `usd`."""
    prices = row.pop("usd", None)
    if not isinstance(prices, dict):
        raise ValueError("usd is not a table of dollars by region")
    return [row | {"region": region, "usd": usd} for region, usd in prices.items()]
