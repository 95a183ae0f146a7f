"""The AWS catalog: each table is read on first use and cached."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from infra.catalog.aws import storage_classes
from infra.catalog.aws.eks import Eks
from infra.catalog.aws.lustre import LustreTable
from infra.catalog.aws.model import (
    Accelerator,
    CapacityType,
    CpuFamily,
    CpuType,
    EfaInterface,
    EksAddon,
    EndpointGap,
    Endpoints,
    InstancePrice,
    InstanceType,
    KubernetesVersion,
    LustreThroughput,
    Permission,
    Region,
    ServiceQuota,
    SimulatedResource,
    ZoneWithoutEks,
)
from infra.catalog.aws.releases import AddonRelease, NodeImage, Releases
from infra.catalog.catalog import Catalog, refuse_strange
from infra.catalog.errors import found
from infra.catalog.rows import Hardware
from infra.catalog.tables import read_rows, read_table

_SMALL = {"medium": 1, "large": 2, "xlarge": 4}


class AwsCatalog(Catalog):
    """Dated facts about AWS; see `Catalog`."""

    cool = storage_classes.COOL
    cold = storage_classes.COLD
    block_drain_minutes = 40
    """Before the end of a Capacity Block: EC2 ends its machines from 30 minutes before on and warns 10
    minutes earlier, which is what jobs have for a last checkpoint. UltraServers end 60 minutes before; the
    catalog has no type of theirs. Source: EC2 User Guide, capacity-blocks-monitor, read 2026-11-22."""

    def accelerators_in(self, machine: str) -> int:
        """GPUs of a machine type; 0 for one without, or unknown."""
        found = self.instance_types.get(machine)
        return found.accelerator_count if found else 0

    def hardware(self, machine: str) -> Hardware | None:
        """Processors, memory and GPUs of a machine type; None where a table lacks one of them."""
        if known := self.instance_types.get(machine):
            return Hardware(known.vcpu, known.memory_mib, known.accelerator_count, known.accelerator)
        plain = self.cpu_type(machine)
        return Hardware(plain.vcpu, plain.memory_mib) if plain else None

    @cached_property
    def accelerators(self) -> Mapping[str, Accelerator]:
        """GPU models by key, such as "a100-80"."""
        return read_table(self._folder / "accelerators.toml", "accelerator", Accelerator, "key")

    @cached_property
    def instance_types(self) -> Mapping[str, InstanceType]:
        """GPU machine types by name."""
        path = self._folder / "instance_types.toml"
        found = read_table(path, "instance_type", InstanceType, "name", expand=_with_interfaces)
        refuse_strange(found, self.accelerators)
        return found

    def instance_type(self, name: str) -> InstanceType:
        """The GPU machine type of that name."""
        return found(self.instance_types, "instance type", name)

    @cached_property
    def prices(self) -> Mapping[tuple[str, str, CapacityType], InstancePrice]:
        """Instance prices by (instance type, region, capacity type): GPU types and system-pool CPU types."""
        columns = ("instance_type", "region", "capacity")
        return read_table(self._folder / "prices.toml", "price", InstancePrice, *columns, expand=_by_region)

    def price(self, instance_type: str, region: str, capacity: CapacityType) -> InstancePrice | None:
        """Dollars per instance-hour, or None without a source: unknown, never free."""
        return self.prices.get((instance_type, region, capacity))

    @cached_property
    def regions(self) -> Mapping[str, Region]:
        """Regions that offer any GPU type of the catalog, by name."""
        return read_table(self._folder / "regions.toml", "region", Region, "name", expand=_with_tuples)

    def region(self, name: str) -> Region:
        """The region of that name."""
        return found(self.regions, "region", name)

    @cached_property
    def cpu_types(self) -> Mapping[str, CpuFamily]:
        """The family of each CPU machine type such as "m6i.xlarge": types for a cluster's own services."""
        rows = read_rows(self._folder / "cpu_families.toml", "cpu_family", CpuFamily)
        return {f"{row.name}.{size}": row for row in rows for size in row.sizes}

    def cpu_type(self, name: str) -> CpuType | None:
        """A CPU machine type whose processors and memory follow from its size; None for others."""
        family, size = self.cpu_types.get(name), name.rpartition(".")[2]
        if family is None or family.mib_per_vcpu is None:
            return None
        # Sizes count in units of four processors; a test checks that against the EC2 API.
        vcpu = _SMALL.get(size) or 4 * int(size.removesuffix("xlarge"))
        return CpuType(name, family.architecture, vcpu, vcpu * family.mib_per_vcpu)

    def vcpus(self, machine: str) -> int | None:
        """Virtual processors of a GPU or CPU type; None for an unknown type."""
        known = self.instance_types.get(machine) or self.cpu_type(machine)
        if known is not None or machine not in self.cpu_types:
            return known.vcpu if known is not None else None
        # The burstable families: two processors up to `large`, then as all others.
        size = machine.rpartition(".")[2]
        return 4 * int(size.removesuffix("xlarge") or 1) if size.endswith("xlarge") else 2

    def offering_zones(self, machine: str, region: str) -> tuple[str, ...] | None:
        """Ids of the zones of a known region that offer a GPU or CPU type; None for an unknown type."""
        place, family = self.region(region), self.cpu_types.get(machine)
        if family is not None:
            here = place.zone_ids if region in family.regions else ()
            return tuple(zone for zone in here if zone not in family.without_zones)
        return place.instance_types.get(machine, ()) if machine in self.instance_types else None

    @cached_property
    def endpoints(self) -> frozenset[str]:
        """Names of the services that have interface endpoints."""
        rows = read_rows(self._folder / "endpoints.toml", "endpoints", Endpoints)
        return frozenset(name for row in rows for name in row.names)

    @cached_property
    def endpoint_gaps(self) -> Mapping[str, EndpointGap]:
        """Regions that lack the interface endpoint of a service, by its name."""
        return read_table(self._folder / "endpoints.toml", "endpoint_gap", EndpointGap, "name")

    @cached_property
    def lustre(self) -> LustreTable:
        """Sizes and throughputs of FSx for Lustre PERSISTENT_2 SSD, with their rules."""
        column = "throughput_mb_s_per_tib"
        tiers = read_table(self._folder / "lustre.toml", "tier", LustreThroughput, column)
        return LustreTable(dict(sorted(tiers.items())))

    @cached_property
    def eks(self) -> Eks:
        """Kubernetes versions and add-ons of EKS."""
        path = self._folder / "eks.toml"
        return Eks(
            read_table(path, "version", KubernetesVersion, "version"),
            read_table(path, "addon", EksAddon, "name", expand=_with_identities),
            read_table(path, "zone_without_eks", ZoneWithoutEks, "zone_id"),
        )

    @cached_property
    def quotas(self) -> Mapping[str, ServiceQuota]:
        """Default service quotas by key, such as "ec2_on_demand_p"."""
        return read_table(self._folder / "quotas.toml", "quota", ServiceQuota, "key")

    @cached_property
    def permissions(self) -> Mapping[str, Permission]:
        """IAM actions that a deployer needs, by Pulumi type."""
        return read_table(self._folder / "permissions.toml", "permission", Permission, "type")

    @cached_property
    def simulated_resources(self) -> Mapping[str, SimulatedResource]:
        """Resources with which a deployer's actions are simulated, by ARN template."""
        return read_table(self._folder / "permissions.toml", "resource", SimulatedResource, "arn")

    @cached_property
    def releases(self) -> Releases:
        """Versions of add-ons and node images by version of Kubernetes."""
        path = self._folder / "releases.toml"
        return Releases(
            read_table(path, "addon", AddonRelease, "addon", "kubernetes"),
            read_table(path, "node_image", NodeImage, "kubernetes"),
        )


def _with_interfaces(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Unfold runs of cards, `{cards = [first, last], device = n, type = "..."}`, into single interfaces."""
    runs = row.pop("interfaces", [])
    row["efa"] = tuple(
        EfaInterface(network_card_index=card, device_index=run["device"], interface_type=run["type"])
        for run in runs
        for card in range(run["cards"][0], run["cards"][1] + 1)
    )
    return [row]


def _by_region(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Unfold `usd_per_hour_by_region` of one type, single figures, into a row per region."""
    if "usd_per_hour_by_region" not in row:
        return [row]
    figures = ("usd_per_hour_min", "usd_per_hour_expected", "usd_per_hour_max")
    by_region = row.pop("usd_per_hour_by_region")
    return [{**row, "region": region, **dict.fromkeys(figures, usd)} for region, usd in by_region.items()]


def _with_tuples(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Freeze the zone lists inside a region's table of instance types."""
    offered = row.get("instance_types", {})
    row["instance_types"] = {name: tuple(zones) for name, zones in offered.items()}
    return [row]


def _with_identities(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Freeze the lists inside an add-on's identities."""
    row["identities"] = [
        {name: tuple(value) if isinstance(value, list) else value for name, value in one.items()}
        for one in row.get("identities", [])
    ]
    return [row]
