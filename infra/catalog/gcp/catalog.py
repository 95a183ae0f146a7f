"""The catalog of Google Cloud: each table is read on first use and cached."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from infra.catalog.catalog import Catalog, refuse_strange
from infra.catalog.errors import found
from infra.catalog.gcp import storage_classes
from infra.catalog.gcp.gke import Gke
from infra.catalog.gcp.model import (
    Accelerator,
    CpuFamily,
    CpuType,
    FilestoreTier,
    GkeMinor,
    GkeVersion,
    GpuNetworks,
    GpuPrice,
    LustreTier,
    MachineType,
    Market,
    Offer,
    Region,
    ReleaseChannel,
    Sale,
    ServiceQuota,
    VmPrice,
    Way,
    family_of,
)
from infra.catalog.rows import Hardware, per_region
from infra.catalog.tables import CatalogError, by_key, read_rows, read_table


class GcpCatalog(Catalog):
    """Dated facts about Google Cloud; see `Catalog`."""

    cool = storage_classes.COOL
    cold = storage_classes.COLD
    block_drain_minutes = 10
    """Before the end of a reservation in calendar mode, for a last checkpoint: at the end Compute Engine ends
    it and its machines. Source: Compute Engine v1 API, FutureReservation.reservationMode, read 2026-11-25."""

    def accelerators_in(self, machine: str) -> int:
        """GPUs of a machine type; 0 for one without, or unknown."""
        found = self.machine_types.get(machine)
        return found.count if found else 0

    def hardware(self, machine: str) -> Hardware | None:
        """Processors, memory and GPUs of a machine type; None where a table lacks one of them."""
        if known := self.machine_types.get(machine):
            return Hardware(known.vcpu, known.memory_gib * 1024, known.count, known.accelerator)
        plain = self.cpu_type(machine)
        return Hardware(plain.vcpu, plain.memory_gib * 1024) if plain else None

    @cached_property
    def accelerators(self) -> Mapping[str, Accelerator]:
        """GPU models by their name in GKE, such as `nvidia-l4`."""
        return read_table(self._folder / "accelerators.toml", "accelerator", Accelerator, "name")

    @cached_property
    def machine_types(self) -> Mapping[str, MachineType]:
        """Machine types with built-in GPUs, by name."""
        found = read_table(self._folder / "machine_types.toml", "machine_type", MachineType, "name")
        refuse_strange(found, self.accelerators)
        return found

    def machine_type(self, name: str) -> MachineType:
        """The machine type with built-in GPUs of that name."""
        return found(self.machine_types, "machine type", name)

    @cached_property
    def gpu_networks(self) -> Mapping[str, GpuNetworks]:
        """Networks of the NICs of GPUs, by machine type."""
        return read_table(self._folder / "machine_types.toml", "gpu_networks", GpuNetworks, "machine")

    @cached_property
    def cpu_types(self) -> Mapping[str, CpuFamily]:
        """The family of each CPU machine type such as `e2-standard-4`."""
        rows = read_rows(self._folder / "cpu_families.toml", "cpu_family", CpuFamily)
        return {f"{row.name}-{size}": row for row in rows for size in row.sizes}

    def cpu_type(self, name: str) -> CpuType | None:
        """A CPU machine type; None for any other."""
        family = self.cpu_types.get(name)
        if family is None:
            return None
        vcpu = int(name.rpartition("-")[2])
        return CpuType(name, vcpu, int(vcpu * family.gib_per_vcpu))

    def vcpus(self, machine: str) -> int | None:
        """Virtual processors of a GPU or CPU type; None for an unknown type."""
        known = self.machine_types.get(machine) or self.cpu_type(machine)
        return known.vcpu if known is not None else None

    def boot_disk(self, machine: str) -> str | None:
        """The type of a node's boot disk; None where GKE chooses, or for an unknown type."""
        known = self.machine_types.get(machine) or self.cpu_types.get(machine)
        return known.boot_disk if known is not None else None

    @cached_property
    def offers(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Names of the zones that offer a GPU type, by type and region; empty: no source names them."""
        rows = read_rows(self._folder / "offers.toml", "offer", Offer, _with_frozen_zones)
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for row in rows:
            for machine in row.machines:
                for region, letters in row.zones.items():
                    if (machine, region) in found:
                        raise CatalogError(f"offers.toml: {machine} in {region} is listed twice")
                    found[machine, region] = tuple(f"{region}-{letter}" for letter in letters)
        return found

    def offering_zones(self, machine: str, region: str) -> tuple[str, ...] | None:
        """Zones of a known region that may offer a GPU or CPU type; None for an unknown type.

        Where a source names only the region: all of its zones.
        """
        place, family = self.region(region), self.cpu_types.get(machine)
        if family is not None:
            return place.zones if region in family.regions else ()
        if machine not in self.machine_types:
            return None
        zones = self.offers.get((machine, region))
        return () if zones is None else zones or place.zones

    @cached_property
    def sales(self) -> Mapping[str, Sale]:
        """Ways to buy a machine type with GPUs, by its name."""
        rows = read_rows(self._folder / "purchases.toml", "sale", Sale)
        named = [(machine, row) for row in rows for machine in row.machines]
        if len({machine for machine, _ in named}) < len(named):
            raise CatalogError("purchases.toml: a machine type is listed twice")
        return dict(named)

    def sold(self, machine: str, way: Way) -> bool | None:
        """Return whether a machine type is sold in that way, where it is offered; None: no source says."""
        row = self.sales.get(machine)
        if way in self.ways(machine):
            return True
        unknown = row.unknown if row else () if machine in self.cpu_types else (way,)
        return None if way in unknown else False

    def ways(self, machine: str) -> tuple[Way, ...]:
        """The ways in which a machine type is sold, as far as sources say."""
        row = self.sales.get(machine)
        if row is not None:
            return row.ways
        return ("on_demand", "spot") if machine in self.cpu_types else ()

    @cached_property
    def vm_prices(self) -> Mapping[tuple[str, str, Market], VmPrice]:
        """Prices of processors and memory by (family, region, market)."""
        rows = read_rows(self._folder / "prices.toml", "vm_price", VmPrice, per_region)
        strange = [f"no machine {row.reference!r}" for row in rows if self.vcpus(row.reference) is None]
        if strange:
            raise CatalogError("\n".join(strange))
        return by_key(rows, lambda row: (family_of(row.reference), row.region, row.market), "prices.toml")

    @cached_property
    def gpu_prices(self) -> Mapping[tuple[str, str, Market], GpuPrice]:
        """Prices of GPUs by (accelerator, region, market)."""
        path, columns = self._folder / "prices.toml", ("accelerator", "region", "market")
        return read_table(path, "gpu_price", GpuPrice, *columns, expand=per_region)

    @cached_property
    def regions(self) -> Mapping[str, Region]:
        """Regions with known zones."""
        return read_table(self._folder / "regions.toml", "region", Region, "name", expand=_with_zones)

    def region(self, name: str) -> Region:
        """The region of that name."""
        return found(self.regions, "region", name)

    @cached_property
    def gke_versions(self) -> Mapping[str, GkeVersion]:
        """GKE versions by name: that of new clusters, then the newest first."""
        return read_table(self._folder / "gke.toml", "version", GkeVersion, "name")

    @cached_property
    def gke(self) -> Gke:
        """Minor versions and release channels of GKE."""
        path = self._folder / "gke.toml"
        return Gke(
            read_table(path, "minor", GkeMinor, "name"),
            read_table(path, "channel", ReleaseChannel, "name"),
        )

    @cached_property
    def quotas(self) -> Mapping[str, ServiceQuota]:
        """Quotas of a project by key, such as "h100"."""
        return read_table(self._folder / "quotas.toml", "quota", ServiceQuota, "key")

    @cached_property
    def filestore_tiers(self) -> Mapping[str, FilestoreTier]:
        """Filestore tiers by name."""
        path = self._folder / "storage.toml"
        return read_table(path, "filestore", FilestoreTier, "tier", expand=_with_bands)

    @cached_property
    def lustre_tiers(self) -> Mapping[int, LustreTier]:
        """Managed Lustre tiers by throughput in MB/s per TiB."""
        path = self._folder / "storage.toml"
        return read_table(path, "lustre", LustreTier, "throughput", expand=_with_bands)


def _with_zones(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Unfold the letters of zones into their names."""
    return [{**row, "zones": [f"{row['name']}-{letter}" for letter in row["zones"]]}]


def _with_frozen_zones(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "zones": {region: tuple(zones) for region, zones in row["zones"].items()}}]


def _with_bands(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**row, "bands": tuple(tuple(band) for band in row["bands"])}]
