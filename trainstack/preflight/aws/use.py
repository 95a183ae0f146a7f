"""The present use of the account's quotas, without that of the stack itself."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from infra.catalog.aws import facts
from infra.catalog.aws.quotas import vcpu_key
from trainstack.preflight.aws.account import Account

_GIB_PER_TIB = 1024
_MARKETS = {"spot": "spot", "capacity-block": "capacity_block"}


class Use:
    """The use of each quota by others; data that several quotas need is requested once."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._counted: Mapping[str, Callable[[], float]] = {
            "vpcs": lambda: self._others("describe_vpcs", "Vpcs"),
            "internet_gateways": lambda: self._others("describe_internet_gateways", "InternetGateways"),
            "elastic_ips": self._addresses,
            "network_interfaces": self._interfaces,
            "ebs_gp3_tib": self._gp3,
            "eks_clusters": self._clusters,
            "pcs_clusters": self._slurm_clusters,
            "lustre_persistent_2_gib": self._lustre,
            "nat_gateways_per_zone": self._nat_gateways,
            "gateway_endpoints": self._gateway_endpoints,
            "eks_node_groups": lambda: 0.0,  # those of the stack's own cluster
            "efs_file_systems": lambda: self._tagged("efs", "describe_file_systems", "FileSystems", "Tags"),
            "db_clusters": lambda: self._tagged("rds", "describe_db_clusters", "DBClusters", "TagList"),
            "db_instances": lambda: self._tagged("rds", "describe_db_instances", "DBInstances", "TagList"),
            "load_balancers": self._load_balancers,
        }

    def of(self, key: str) -> float:
        """The use, in the unit of the quota. Raises ClientError."""
        return self._counted[key]() if key in self._counted else self._vcpus.get(key, 0.0)

    def _others(self, operation: str, key: str) -> float:
        return self._tagged("ec2", operation, key, "Tags")

    def _tagged(self, service: str, operation: str, key: str, tags: str) -> float:
        rows = self._account.pages(service, operation, key)
        return float(sum(not self._account.owns(row.get(tags, [])) for row in rows))

    def _nat_gateways(self) -> float:
        """The most that others have in one of the stack's zones; a deleted one is listed for an hour."""
        subnets = self._account.pages("ec2", "describe_subnets", "Subnets")
        zone_of = {row["SubnetId"]: row["AvailabilityZone"] for row in subnets}
        alive = [{"Name": "state", "Values": ["pending", "available", "deleting"]}]
        rows = self._account.pages("ec2", "describe_nat_gateways", "NatGateways", Filters=alive)
        zones = Counter(
            zone_of.get(row.get("SubnetId", ""))
            for row in rows
            if not self._account.owns(row.get("Tags", []))
        )
        return float(max(zones[zone] for zone in self._account.layout.zones))

    def _gateway_endpoints(self) -> float:
        kind = [{"Name": "vpc-endpoint-type", "Values": ["Gateway"]}]
        rows = self._account.pages("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=kind)
        return float(sum(not self._account.owns(row.get("Tags", [])) for row in rows))

    def _load_balancers(self) -> float:
        """All Application Load Balancers: the list has no tags, so the stack's own counts, too."""
        rows = self._account.pages("elbv2", "describe_load_balancers", "LoadBalancers")
        return float(sum(row["Type"] == "application" for row in rows))

    def _addresses(self) -> float:
        rows = self._account.client("ec2").describe_addresses()["Addresses"]
        return float(sum(not self._account.owns(row.get("Tags", [])) for row in rows))

    def _interfaces(self) -> float:
        rows = self._account.pages("ec2", "describe_network_interfaces", "NetworkInterfaces")
        return float(sum(not self._account.owns(row.get("TagSet", [])) for row in rows))

    def _gp3(self) -> float:
        gp3 = [{"Name": "volume-type", "Values": ["gp3"]}]
        rows = self._account.pages("ec2", "describe_volumes", "Volumes", Filters=gp3)
        gib = sum(row["Size"] for row in rows if not self._account.owns(row.get("Tags", [])))
        return float(gib / _GIB_PER_TIB)

    def _clusters(self) -> float:
        rows = self._account.pages("eks", "list_clusters", "clusters")
        own = {spec.name for spec in (self._account.spec, *self._account.beside)}
        return float(sum(name not in own for name in rows))

    def _slurm_clusters(self) -> float:
        """All but those with the name of the stack or of one beside it; suspended ones count."""
        own = {spec.name for spec in (self._account.spec, *self._account.beside)}
        rows = self._account.pages("pcs", "list_clusters", "clusters")
        return float(sum(row["name"] not in own for row in rows))

    def _lustre(self) -> float:
        rows = self._account.pages("fsx", "describe_file_systems", "FileSystems")
        return float(
            sum(
                row["StorageCapacity"]
                for row in rows
                if row.get("LustreConfiguration", {}).get("DeploymentType") == "PERSISTENT_2"
                and not self._account.owns(row.get("Tags", []))
            )
        )

    @cached_property
    def _vcpus(self) -> Mapping[str, float]:
        """VCPUs of running machines and of idle reservations by quota; both count."""
        found: dict[str, float] = defaultdict(float)
        alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        for row in self._account.pages("ec2", "describe_instances", "Reservations", Filters=alive):
            for machine in row["Instances"]:
                if not self._account.owns(machine.get("Tags", [])):
                    market = _MARKETS.get(machine.get("InstanceLifecycle", ""), "on_demand")
                    _add(found, machine["InstanceType"], market, _own_vcpus(machine))
        active = [{"Name": "state", "Values": ["active"]}]
        rows = self._account.pages(
            "ec2", "describe_capacity_reservations", "CapacityReservations", Filters=active
        )
        for row in rows:
            if row.get("ReservationType", "default") == "default":
                idle = (facts.vcpus(row["InstanceType"]) or 0) * row["AvailableInstanceCount"]
                _add(found, row["InstanceType"], "on_demand", idle)
        return found


def _add(found: dict[str, float], machine: str, market: str, vcpus: float) -> None:
    key = vcpu_key(machine, market)
    if key:
        found[key] += vcpus


def _own_vcpus(machine: Mapping[str, Any]) -> float:
    """The vCPUs of its type or, where the catalog lacks the type, of the machine's own options."""
    options = machine.get("CpuOptions", {})
    text = options.get("CoreCount", 0) * options.get("ThreadsPerCore", 1)
    return float(facts.vcpus(machine["InstanceType"]) or text)
