"""The catalog of Google Cloud: each table is read when it is first asked for, and kept."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from infra.catalog.gcp.model import FilestoreTier, GkeVersion, GpuNetworks, LustreTier, MachineType, Region
from infra.catalog.tables import by_key, read_rows


class GcpCatalog:
    """Dated facts about Google Cloud, read from a folder of TOML tables.

    Every table raises CatalogError when its file is malformed, on first use.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def machine_types(self) -> Mapping[str, MachineType]:
        """Machine types with built-in GPUs, by name."""
        rows = read_rows(self._folder / "machine_types.toml", "machine_type", MachineType)
        return by_key(rows, lambda row: row.name, "machine_types.toml")

    @cached_property
    def gpu_networks(self) -> Mapping[str, GpuNetworks]:
        """What the NICs of GPUs need, by the name of the machine type."""
        rows = read_rows(self._folder / "machine_types.toml", "gpu_networks", GpuNetworks)
        return by_key(rows, lambda row: row.machine, "machine_types.toml")

    @cached_property
    def regions(self) -> Mapping[str, Region]:
        """Regions of which a source names the zones."""
        rows = read_rows(self._folder / "regions.toml", "region", Region, _with_zones)
        return by_key(rows, lambda row: row.name, "regions.toml")

    @cached_property
    def gke_versions(self) -> Mapping[str, GkeVersion]:
        """GKE versions by name, the newest first."""
        rows = read_rows(self._folder / "gke.toml", "version", GkeVersion)
        return by_key(rows, lambda row: row.name, "gke.toml")

    @cached_property
    def filestore_tiers(self) -> Mapping[str, FilestoreTier]:
        """Filestore tiers by name."""
        rows = read_rows(self._folder / "storage.toml", "filestore", FilestoreTier, _with_bands)
        return by_key(rows, lambda row: row.tier, "storage.toml")

    @cached_property
    def lustre_tiers(self) -> Mapping[int, LustreTier]:
        """Managed Lustre tiers by throughput in MB/s per TiB."""
        rows = read_rows(self._folder / "storage.toml", "lustre", LustreTier)
        return by_key(rows, lambda row: row.throughput, "storage.toml")


def _with_zones(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Unfold the letters of zones into their names."""
    return [{**row, "zones": [f"{row['name']}-{letter}" for letter in row["zones"]]}]


def _with_bands(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "bands": tuple(tuple(band) for band in row["bands"])}]
