"""Exhaustion of address ranges: pods of a cluster, services of a network."""

import ipaddress
from collections.abc import Iterator

from rehearsal.core.model import Properties
from rehearsal.core.properties import at
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.rules.networks import parse
from rehearsal.gcp.sizes import POOL, most_nodes, nodes

_SQL = "gcp:sql/databaseInstance:DatabaseInstance"
_RANGES = "GKE documentation, Configure maximum Pods per node (a node's range has twice as many addresses)"
_PODS = 110
_SMALLEST = 24  # Cloud SQL takes a /24 of the range for each region


def _room(inputs: Properties, world: ProjectView) -> tuple[str, int, int, int] | None:
    """(range, nodes that fit, initial nodes of the other pools, their maximum)."""
    cluster = world.find(inputs.get("cluster"), "container/cluster:Cluster")
    subnetwork = cluster and world.find(cluster.outputs.get("subnetwork"), "compute/subnetwork:Subnetwork")
    if cluster is None or subnetwork is None:
        return None
    shared = at(cluster.inputs, "ipAllocationPolicy.clusterSecondaryRangeName")
    name = at(inputs, "networkConfig.podRange") or shared
    cidr = next(
        (
            block(one).get("ipCidrRange")
            for one in items(subnetwork.inputs.get("secondaryIpRanges"))
            if block(one).get("rangeName") == name
        ),
        None,
    )
    network = parse(cidr)
    if network is None:
        return None
    usual = cluster.inputs.get("defaultMaxPodsPerNode")
    most = inputs.get("maxPodsPerNode") or usual or _PODS
    if not isinstance(most, int | float):
        return None
    each = 2 ** (2 * int(most) - 1).bit_length()
    started = grown = 0
    location = str(cluster.outputs.get("location"))
    for other in world.users(cluster, "container/nodePool:NodePool"):
        if (at(other.inputs, "networkConfig.podRange") or shared) == name:
            started += nodes(POOL, other.inputs, location)
            grown += most_nodes(other.inputs, location)
    return str(name), network.num_addresses // each, started, grown


@BOOK.rule_around("GCP-POOL-024", POOL, source=_RANGES)
def _exhausted(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range of pods has room for the nodes that pools start with."""
    room, location = _room(inputs, world), str(world.places.get("location") or "")
    wanted = nodes(POOL, inputs, location)
    if room and wanted + room[2] > room[1]:
        yield Violation(
            "maxPodsPerNode",
            f"[IP_SPACE_EXHAUSTED_WITH_DETAILS]: IP space of '{room[0]}' is exhausted: it has room for "
            f"{room[1]} nodes, {wanted + room[2]} are started",
            "Give a larger secondary range, or fewer pods per node.",
            "ipSpaceExhausted",
        )


@BOOK.rule_around("GCP-POOL-025", POOL, source=_RANGES, advice=True)
def _may_exhaust(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range of pods has room for the nodes that pools may grow to."""
    room, location = _room(inputs, world), str(world.places.get("location") or "")
    if room is None or nodes(POOL, inputs, location) + room[2] > room[1]:
        return
    wanted = most_nodes(inputs, location) + room[3]
    if wanted > room[1]:
        yield Violation(
            "autoscaling",
            f"{room[0]} has room for {room[1]} nodes, and the pools may grow to {wanted}",
            "The nodes beyond will fail with IP_SPACE_EXHAUSTED.",
        )


@BOOK.rule_around(
    "GCP-SQL-006",
    _SQL,
    source="Cloud SQL documentation, Configure private services access (a /24 at least); "
    "sassoftware/viya4-iac-gcp issue 194 (words)",
)
def _blocks(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range that services of a network are given has a /24 for Cloud SQL."""
    path = "settings.ipConfiguration.privateNetwork"
    network = world.find(at(inputs, path), "compute/network:Network")
    if network is None:
        return
    lengths = []
    for connection in world.users(network, "servicenetworking/connection:Connection"):
        for name in items(connection.inputs.get("reservedPeeringRanges")):
            reserved = world.find(name, "compute/globalAddress:GlobalAddress")
            length = reserved.outputs.get("prefixLength") if reserved else None
            lengths.append(int(length) if isinstance(length, int | float) else 0)
    if lengths and min(lengths) > _SMALLEST:
        size = ipaddress.ip_network(f"0.0.0.0/{min(lengths)}").num_addresses
        yield Violation(
            path,
            "Failed to create subnetwork. Couldn't find free blocks in allocated IP ranges. Please allocate "
            "new ranges for this service provider",
            f"The largest range has {size} addresses: reserve a /24 or more.",
            "invalidRequest",
        )
