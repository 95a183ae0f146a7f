"""Prices of resources of Google Cloud, by type."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.catalog.errors import UnknownFactError
from infra.catalog.gcp import facts
from infra.catalog.gcp.database import SHARED_CORES, tier
from infra.catalog.gcp.model import Market
from infra.catalog.gcp.prices import node_price
from infra.cost.tariff import Units, always
from policies.resource import Resource, UndeterminedError
from trainstack.prices.model import Part, PricePlace, Pricer, UnpricedPart, number, text, value_at

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_ZONES_OF_A_REGION = 3
"""Of a regional cluster whose locations the program leaves out (GKE documentation, Regional clusters)."""
_DISKS = {"pd-standard": "pd_standard", "pd-balanced": "pd_balanced"}
_NODE_DISK_GIB = 100
"""Default of node pools (provider documentation, container_node_pool, `disk_size_gb`)."""


def region_named(resource: Resource) -> str:
    """The region of the zone, location or region that a resource names; empty where it is not known."""
    try:
        given = (text(resource.props, key) for key in ("zone", "location", "region"))
        place = next(filter(None, given), "")
    except UndeterminedError:
        return ""
    return place.rpartition("-")[0] if _ZONE.fullmatch(place) else place


def _machine(place: PricePlace, machine: str, market: Market, nodes: Units, gpus: object = None) -> Part:
    name = f"{machine or 'machine'} ({market.replace('_', ' ')})"
    builtin = facts.accelerators_in(machine) > 0
    if gpus and not builtin:
        return UnpricedPart(f"{name} with GPUs", "no known price of GPUs that are attached")
    price = node_price(machine, place.region, market) if machine else None
    usd = (price.least, price.expected, price.most) if price else None
    return place.machines(name, usd, nodes, price.renew if price else None)


def _disk(
    place: PricePlace, name: str, kind: str, size: float | None, nodes: Units = (1.0, 1.0, 1.0)
) -> Part:
    key = _DISKS.get(kind.rpartition("/")[2])
    if key is None or size is None:
        return UnpricedPart(f"{name} ({kind or 'type not stated'})", "no known price of its type, or no size")
    return place.item(f"{name} ({size:g} GiB)", key, (nodes[0] * size, nodes[1] * size, nodes[2] * size))


def _nodes(place: PricePlace, config: Mapping[str, Any], nodes: Units) -> Iterator[Part]:
    spot = value_at(config, "spot") is True or value_at(config, "preemptible") is True
    market: Market = (
        "spot" if spot else "flex_start" if value_at(config, "flexStart") is True else "on_demand"
    )
    machine = text(config, "machineType", "e2-medium")
    yield _machine(place, machine, market, nodes, value_at(config, "guestAccelerators"))
    kind = text(config, "diskType") or facts.boot_disk(machine) or "pd-balanced"
    yield _disk(place, "boot disks", kind, number(config, "diskSizeGb", _NODE_DISK_GIB), nodes)


def _zones(props: Mapping[str, Any], given: str) -> int:
    listed = value_at(props, "nodeLocations")
    if isinstance(listed, list) and listed:
        return len(listed)
    return 1 if _ZONE.fullmatch(given) else _ZONES_OF_A_REGION


def _node_pool(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    zones = _zones(props, text(props, "location"))
    low, high = number(props, "autoscaling.minNodeCount"), number(props, "autoscaling.maxNodeCount")
    total = number(props, "autoscaling.totalMinNodeCount"), number(props, "autoscaling.totalMaxNodeCount")
    count = number(props, "nodeCount") or number(props, "initialNodeCount")
    if total[1] is not None:
        nodes = (total[0] or 0.0, max(total[0] or 0.0, count or 0.0), total[1])
    elif high is not None:
        usual = min(max(count or 0.0, low or 0.0), high)
        nodes = ((low or 0.0) * zones, usual * zones, high * zones)
    else:
        nodes = always((1.0 if count is None else count) * zones)
    yield from _nodes(place, value_at(props, "nodeConfig") or {}, nodes)


def _cluster(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    yield place.hours("control plane", "gke_cluster")
    if value_at(props, "enableAutopilot") is True:
        yield UnpricedPart("pods of Autopilot", "by their requests")
        return
    count = number(props, "initialNodeCount", 0.0) or 0.0
    if value_at(props, "removeDefaultNodePool") is True or not count:
        return
    nodes = always(count * _zones(props, text(props, "location")))
    yield from _nodes(place, value_at(props, "nodeConfig") or {}, nodes)


def _instance(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    model = text(props, "scheduling.provisioningModel")
    spot = value_at(props, "scheduling.preemptible") is True or model == "SPOT"
    market: Market = "spot" if spot else "flex_start" if model == "FLEX_START" else "on_demand"
    machine = text(props, "machineType").rpartition("/")[2]
    yield _machine(place, machine, market, always(1), value_at(props, "guestAccelerators"))
    given = value_at(props, "bootDisk.initializeParams") or {}
    yield _disk(place, "boot disk", text(given, "type", "pd-standard"), number(given, "size"))
    if value_at(props, "networkInterfaces.accessConfigs"):
        yield UnpricedPart("external address", "no known price")


def _stored(resource: Resource, place: PricePlace) -> Iterator[Part]:
    yield _disk(place, "disk", text(resource.props, "type", "pd-standard"), number(resource.props, "size"))


def _database(resource: Resource, place: PricePlace) -> Iterator[Part]:
    props = resource.props
    name = text(props, "settings.tier")
    kind = "regional" if text(props, "settings.availabilityType") == "REGIONAL" else "zonal"
    if text(props, "settings.edition", "ENTERPRISE") != "ENTERPRISE":
        yield UnpricedPart(f"Cloud SQL {name}", "no known price of its edition")
        return
    size = tier(name)
    if name in SHARED_CORES:
        yield place.hours(f"Cloud SQL {name}", f"cloud_sql_{name}_{kind}")
    elif size is not None:
        yield place.hours("processors", f"cloud_sql_vcpu_{kind}", size.vcpu)
        yield place.hours("memory", f"cloud_sql_gib_{kind}", size.gib)
    else:
        yield UnpricedPart(f"Cloud SQL {name}", "no known price of its tier")
    if text(props, "settings.diskType", "PD_SSD") == "PD_SSD":
        disk = number(props, "settings.diskSize", 10.0) or 10.0
        yield place.item(f"disk ({disk:g} GiB)", f"cloud_sql_ssd_{kind}", disk)
    else:
        yield UnpricedPart("disk", "no known price of its type")


def _filestore(resource: Resource, place: PricePlace) -> Iterator[Part]:
    size = number(resource.props, "fileShares.capacityGb")
    if text(resource.props, "tier") not in ("REGIONAL", "ENTERPRISE") or size is None:
        yield UnpricedPart("file share", "no known price of its tier")
        return
    yield place.item(f"file share ({size:g} GiB)", "filestore_regional", size)


def _lustre(resource: Resource, place: PricePlace) -> Iterator[Part]:
    size, rate = number(resource.props, "capacityGib"), number(resource.props, "perUnitStorageThroughput")
    if size is None or rate is None:
        yield UnpricedPart("file system", "the program states no size or throughput")
        return
    try:
        yield place.item(f"file system ({size:g} GiB)", f"managed_lustre_{rate:g}", size)
    except UnknownFactError:
        yield UnpricedPart("file system", f"no known price of {rate:g} MB/s per TiB")


def _fixed(name: str, key: str) -> Pricer:
    def price(_: Resource, place: PricePlace) -> Iterator[Part]:
        yield place.item(name, key, 1.0)

    return price


PRICERS: Mapping[str, Pricer] = {
    "gcp:compute/disk:Disk": _stored,
    "gcp:compute/instance:Instance": _instance,
    "gcp:container/cluster:Cluster": _cluster,
    "gcp:container/nodePool:NodePool": _node_pool,
    "gcp:filestore/instance:Instance": _filestore,
    "gcp:kms/cryptoKey:CryptoKey": _fixed("key version", "kms_key_version"),
    "gcp:lustre/instance:Instance": _lustre,
    "gcp:secretmanager/secretVersion:SecretVersion": _fixed("secret version", "secret_version"),
    "gcp:sql/databaseInstance:DatabaseInstance": _database,
}
"""Functions by type."""
