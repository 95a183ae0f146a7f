"""Prices of resources of AWS, by type."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.catalog.aws import facts
from infra.catalog.aws.model import CapacityType
from infra.catalog.errors import UnknownFactError
from infra.cost.tariff import Units, always
from policies.resource import Resource, is_unknown
from trainstack.prices.model import BY_USAGE, Part, PricePlace, Pricer, UnpricedPart, number, text, value_at

_GP3_IOPS, _GP3_MIB_S = 3000, 125
"""Included in the price of a volume (EC2 User Guide, General Purpose SSD volumes, read 2026-11-20)."""


def _instances(
    place: PricePlace, machine: str, nodes: Units, capacity: CapacityType = "on_demand", tenancy: str = ""
) -> Part:
    name = f"{machine or 'machine'} ({capacity.replace('_', ' ')})"
    if tenancy not in ("", "default"):
        return UnpricedPart(name, f"no known price with tenancy {tenancy}")
    price = facts.price(machine, place.region, capacity)
    usd = (price.usd_per_hour_min, price.usd_per_hour_expected, price.usd_per_hour_max) if price else None
    return place.machines(name, usd, nodes, price)


def _volume(
    place: PricePlace, name: str, given: Mapping[str, Any], nodes: Units = (1.0, 1.0, 1.0)
) -> Iterator[Part]:
    kind = text(given, "volumeType") or text(given, "type")
    size = number(given, "volumeSize") or number(given, "size")
    if not kind or size is None:
        yield UnpricedPart(name, "the program states no type and size")
        return
    if kind != "gp3":
        yield UnpricedPart(f"{name} ({kind})", f"no known price of {kind}")
        return
    yield place.item(f"{name} ({size:g} GiB)", "ebs_gp3", (nodes[0] * size, nodes[1] * size, nodes[2] * size))
    if (number(given, "iops") or 0) > _GP3_IOPS or (number(given, "throughput") or 0) > _GP3_MIB_S:
        yield UnpricedPart(f"{name}: provisioned IOPS and throughput", "no known price")


def _instance(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    template = place.plan.referred(resource, "launchTemplate", "aws:ec2/launchTemplate:LaunchTemplate")
    machine = text(props, "instanceType") or (text(template.props, "instanceType") if template else "")
    spot = text(props, "instanceMarketOptions.marketType") == "spot"
    yield _instances(place, machine, always(1), "spot" if spot else "on_demand", text(props, "tenancy"))
    yield from _volume(place, "root disk", value_at(props, "rootBlockDevice") or {})


def _ebs(resource: Resource, place: PricePlace) -> Iterator[Part]:
    yield from _volume(place, "volume", resource.props)


def _node_group(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    template = place.plan.referred(resource, "launchTemplate", "aws:ec2/launchTemplate:LaunchTemplate")
    types = value_at(props, "instanceTypes") or []
    machine = str(types[0]) if types else (text(template.props, "instanceType") if template else "t3.medium")
    bought: dict[str, CapacityType] = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity_block"}
    nodes = _scaled(props, "scalingConfig.minSize", "scalingConfig.desiredSize", "scalingConfig.maxSize")
    if nodes is None:
        yield UnpricedPart("nodes", "the program states no number")
        return
    yield _instances(place, machine, nodes, bought.get(text(props, "capacityType"), "on_demand"))
    size = number(props, "diskSize")
    disk: Mapping[str, Any] = {"volumeType": "gp3", "volumeSize": size} if size else {}
    mapped = value_at(template.props, "blockDeviceMappings.ebs") if template else None
    yield from _volume(place, "root disks", mapped or disk, nodes)


def _group(resource: Resource, place: PricePlace) -> Iterator[Part]:
    nodes = _scaled(resource.props, "minSize", "desiredCapacity", "maxSize")
    template = place.plan.referred(resource, "launchTemplate", "aws:ec2/launchTemplate:LaunchTemplate")
    if nodes is None or template is None:
        yield UnpricedPart("machines", "their number or launch template is not in the program")
        return
    props = template.props
    spot = text(props, "instanceMarketOptions.marketType") == "spot"
    yield _instances(place, text(props, "instanceType"), nodes, "spot" if spot else "on_demand")
    yield from _volume(place, "root disks", value_at(props, "blockDeviceMappings.ebs") or {}, nodes)


def _scaled(props: Mapping[str, Any], least: str, usual: str, most: str) -> Units | None:
    low, high = number(props, least), number(props, most)
    if low is None or high is None:
        return None
    return low, min(max(number(props, usual, low) or low, low), high), high


def _cluster(resource: Resource, place: PricePlace) -> Iterator[Part]:
    version = text(resource.props, "version")
    try:
        support = facts.eks.support(version, place.plan.on) if version else "standard"
    except UnknownFactError:
        support = "unknown"
    if support not in ("standard", "extended"):
        yield UnpricedPart("control plane", f"the support of Kubernetes {version} is not known")
        return
    key = "eks_cluster_extended_support" if support == "extended" else "eks_cluster"
    yield place.hours("control plane", key)


def _endpoint(resource: Resource, place: PricePlace) -> Iterator[Part]:
    kind = text(resource.props, "vpcEndpointType", "Gateway")
    if kind == "Gateway":
        return
    if kind != "Interface":
        yield UnpricedPart("endpoint", f"no known price of type {kind}")
        return
    subnets = resource.raw("subnetIds")
    zones = len(subnets) if isinstance(subnets, list) else 0
    if is_unknown(subnets) or not zones:
        yield UnpricedPart("endpoint", "the number of its subnets is not known")
        return
    yield place.hours(f"interface endpoint in {zones} zones", "interface_endpoint", zones)


def _balancer(resource: Resource, place: PricePlace) -> Iterator[Part]:
    kind = text(resource.props, "loadBalancerType", "application")
    if kind == "application":
        yield place.hours("load balancer", "application_load_balancer")
    else:
        yield UnpricedPart("load balancer", f"no known price of type {kind}")
    yield UnpricedPart("capacity units and public addresses", BY_USAGE)


def _lustre(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props, rate = resource.props, number(resource.props, "perUnitStorageThroughput")
    size = number(props, "storageCapacity")
    usual = text(props, "deploymentType") == "PERSISTENT_2" and text(props, "storageType", "SSD") == "SSD"
    if not usual or rate is None or size is None:
        yield UnpricedPart("file system", "no known price of this deployment type")
        return
    yield place.item(f"file system ({size:g} GiB)", f"fsx_lustre_persistent_2_ssd_{rate:g}", size)


def _database(resource: Resource, place: PricePlace) -> Iterator[Part]:
    machine = text(resource.props, "instanceClass")
    cluster = place.plan.referred(resource, "clusterIdentifier", "aws:rds/cluster:Cluster")
    if machine != "db.serverless" or cluster is None:
        yield UnpricedPart(f"instance {machine}".strip(), "no known price of this class")
        return
    low = number(cluster.props, "serverlessv2ScalingConfiguration.minCapacity")
    high = number(cluster.props, "serverlessv2ScalingConfiguration.maxCapacity")
    if low is None or high is None:
        yield UnpricedPart("capacity units", "the program states no range")
        return
    yield place.hours("Aurora capacity units", "aurora_serverless_v2", (low, max(low, 0.5), high))


def _fixed(name: str, key: str, hours: bool = True) -> Pricer:
    def price(_: Resource, place: PricePlace) -> Iterator[Part]:
        yield place.hours(name, key) if hours else place.item(name, key, 1.0)

    return price


def _gateway(_: Resource, place: PricePlace) -> Iterator[Part]:
    yield place.hours("gateway", "nat_gateway")
    yield UnpricedPart("traffic", BY_USAGE)


PRICERS: Mapping[str, Pricer] = {
    "aws:autoscaling/group:Group": _group,
    "aws:ebs/volume:Volume": _ebs,
    "aws:ec2/eip:Eip": _fixed("public address", "public_ipv4"),
    "aws:ec2/instance:Instance": _instance,
    "aws:ec2/natGateway:NatGateway": _gateway,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoint,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:kms/key:Key": _fixed("key", "kms_key", hours=False),
    "aws:lb/loadBalancer:LoadBalancer": _balancer,
    "aws:rds/clusterInstance:ClusterInstance": _database,
    "aws:secretsmanager/secret:Secret": _fixed("secret", "secret", hours=False),
}
"""Functions by type; the type has its current name."""
