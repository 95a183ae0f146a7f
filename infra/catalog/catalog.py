"""Base class of the catalogs: tables that every cloud has."""

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from infra.catalog.errors import found
from infra.catalog.limits import Limit, read_limits
from infra.catalog.rows import Duration, Hardware, ServicePrice, per_region, read_durations
from infra.catalog.storage_classes import StorageClass
from infra.catalog.tables import CatalogError, read_table

EVERY_REGION = "*"


class Catalog:
    """Dated facts about a cloud, read from a folder of TOML tables.

    Every table raises CatalogError when its file is malformed, on first use. Every lookup by name raises
    UnknownFactError when the name has no row; a known name without a figure gives None.
    """

    cool: ClassVar[StorageClass]
    """Storage class of the bucket for objects that are read once a month."""
    cold: ClassVar[StorageClass]
    """Storage class of the bucket for objects that are read once a quarter."""
    block_drain_minutes: ClassVar[int]
    """Minutes before the end of a capacity block from which no job may run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def service_prices(self) -> Mapping[tuple[str, str], ServicePrice]:
        """Prices of services by (key, region); region "*" holds everywhere."""
        path = self._folder / "service_prices.toml"
        return read_table(path, "service_price", ServicePrice, "key", "region", expand=per_region)

    def service_price(self, key: str, region: str) -> ServicePrice | None:
        """Dollars per unit of a service in a region, or None without a source."""
        found({known: known for known, _ in self.service_prices}, "service price", key)
        return self.service_prices.get((key, region)) or self.service_prices.get((key, EVERY_REGION))

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        """Limits of single values, by key such as "node_group_nodes" or "node_pool_nodes"."""
        return read_limits(self._folder / "limits.toml")

    @cached_property
    def durations(self) -> Mapping[str, tuple[Duration, ...]]:
        """Creation times by Pulumi type, one row per kind of its resources; others are unknown."""
        return read_durations(self._folder / "durations.toml")

    def accelerators_in(self, machine: str) -> int:
        """GPUs of a machine type; 0 for one without, or unknown."""
        raise NotImplementedError

    def hardware(self, machine: str) -> Hardware | None:
        """Processors, memory and GPUs of a machine type; None where a table lacks one of them."""
        raise NotImplementedError


def refuse_strange(machines: Mapping[str, Any], accelerators: Collection[str]) -> None:
    """Raise CatalogError for machine types with a GPU model that the catalog lacks."""
    strange = {name: one.accelerator for name, one in machines.items() if one.accelerator not in accelerators}
    if strange:
        raise CatalogError("\n".join(f"{name}: no accelerator {key!r}" for name, key in strange.items()))
