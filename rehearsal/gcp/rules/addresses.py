"""Address ranges: their form, and exhaustion by pods of a cluster and peered services of a network."""

import ipaddress
import re
from collections.abc import Iterator

from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import at, steps, walk
from rehearsal.core.rules.model import EVERY, Violation
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items
from rehearsal.gcp.rules.networks import parse
from rehearsal.gcp.sizes import POOL, most_nodes, nodes

_SQL = "gcp:sql/databaseInstance:DatabaseInstance"
_LUSTRE, _FILESTORE = "gcp:lustre/instance:Instance", "gcp:filestore/instance:Instance"
_RANGES = "GKE documentation, Configure maximum Pods per node (a node's range has twice as many addresses)"
_PODS = 110
# A range, or the length of one alone, in a property that is named so.
_RANGE_NAME, _RANGE = re.compile(r"[cC]idr|^reservedIpRange$"), re.compile(r"([0-9a-fA-F.:]*)/\d+")
_SQL_NETWORK = "settings.ipConfiguration.privateNetwork"
_BY_PEERING = "PRIVATE_SERVICE_ACCESS"
# Prefix lengths of the blocks that services take of the range for peering.
_SQL_BLOCK, _LUSTRE_BLOCK, _FILESTORE_BLOCK, _FILESTORE_BASIC = 24, 23, 24, 29
_BASIC_TIERS = ("BASIC_HDD", "BASIC_SSD", "STANDARD", "PREMIUM")


@BOOK.rule(
    "GCP-RANGE-001", EVERY, source="RFC 4632 (section 3.1) and RFC 4291 (section 2.3): lengths of prefixes"
)
def _form(inputs: Properties) -> Iterator[Violation]:
    """A range of addresses has an address and a prefix of at most 32 or 128 bits."""
    for path, value in walk(inputs):
        name = next((one for one in reversed(steps(path)) if isinstance(one, str)), "")
        if _RANGE_NAME.search(name) and isinstance(value, str) and (found := _RANGE.fullmatch(value)):
            try:
                ipaddress.ip_network(value if found[1] else f"::{value}", strict=False)
            except ValueError:
                yield Violation(path, f"{value} is not a range of addresses such as 10.0.0.0/20")


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


def _peered(value: object, world: ProjectView) -> tuple[Record, int] | None:
    """The network that a value names, and the addresses that its peered services may have; None without."""
    network = world.find(value, "compute/network:Network")
    if network is None:
        return None
    lengths = []
    for connection in world.users(network, "servicenetworking/connection:Connection"):
        for name in items(connection.inputs.get("reservedPeeringRanges")):
            reserved = world.find(name, "compute/globalAddress:GlobalAddress")
            length = reserved.outputs.get("prefixLength") if reserved else None
            lengths.append(int(length) if isinstance(length, int | float) else 0)
    return (network, sum(1 << (32 - length) for length in lengths)) if lengths else None


def _share_block(inputs: Properties) -> int:
    """The prefix length of the block of a Filestore instance."""
    return _FILESTORE_BASIC if str(inputs.get("tier")) in _BASIC_TIERS else _FILESTORE_BLOCK


def _taken(network: Record, world: ProjectView) -> int:
    """Addresses of the peered range that services have: Cloud SQL one block a region, others one each."""
    regions = {
        str(one.outputs.get("region"))
        for one in world.users(network, _SQL.removeprefix("gcp:"))
        if world.find(at(one.inputs, _SQL_NETWORK), "compute/network:Network") == network
    }
    taken = len(regions) << (32 - _SQL_BLOCK)
    taken += sum(1 << (32 - _LUSTRE_BLOCK) for _ in world.users(network, _LUSTRE.removeprefix("gcp:")))
    for share in world.users(network, _FILESTORE.removeprefix("gcp:")):
        if at(share.inputs, "networks[0].connectMode") == _BY_PEERING:
            taken += 1 << (32 - _share_block(share.inputs))
    return taken


def _too_full(path: str, value: object, prefix: int, world: ProjectView) -> Iterator[Violation]:
    """A violation where the peered range of a network has no block of `prefix` left."""
    peered = _peered(value, world)
    if peered is None:
        return
    network, size = peered
    if _taken(network, world) + (1 << (32 - prefix)) > size:
        yield Violation(
            path,
            "Failed to create subnetwork. Couldn't find free blocks in allocated IP ranges. Please allocate "
            "new ranges for this service provider",
            f"The ranges have {size} addresses, and a /{prefix} is missing: reserve a larger range.",
            "invalidRequest",
        )


@BOOK.rule_around(
    "GCP-SQL-006",
    _SQL,
    source="Cloud SQL documentation, Configure private services access (a /24 for each region); "
    "sassoftware/viya4-iac-gcp issue 194 (words)",
)
def _sql_block(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range that services of a network are given has a /24 for Cloud SQL, once in a region."""
    network = world.find(at(inputs, _SQL_NETWORK), "compute/network:Network")
    here = str(inputs.get("region") or world.places.get("region"))
    there = [] if network is None else world.users(network, _SQL.removeprefix("gcp:"))
    if all(str(one.outputs.get("region")) != here for one in there):
        yield from _too_full(_SQL_NETWORK, at(inputs, _SQL_NETWORK), _SQL_BLOCK, world)


@BOOK.rule_around(
    "GCP-LUSTRE-007",
    _LUSTRE,
    source="Managed Lustre documentation, Configure a VPC network (a /23 for each instance)",
)
def _lustre_block(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range that services of a network are given has a /23 for each Lustre instance."""
    yield from _too_full("network", inputs.get("network"), _LUSTRE_BLOCK, world)


@BOOK.rule_around(
    "GCP-FILESTORE-006",
    _FILESTORE,
    source="gcloud reference, filestore instances create, --network reserved-ip-range (/29 for basic tiers, "
    "/24 for others; an older copy says /26 for ENTERPRISE)",
)
def _filestore_block(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """The range that services of a network are given has a block for each Filestore instance in it."""
    if at(inputs, "networks[0].connectMode") == _BY_PEERING:
        path = "networks[0].network"
        yield from _too_full(path, at(inputs, path), _share_block(inputs), world)
