"""Checks of address ranges, of addresses of nodes and pods, of zones, and of access to the API server.

GKE gives each node a block of pod addresses, at least twice as many as pods may run on it, so that addresses
of pods are not reused at once: /26 for 32 pods, /24 for 110. Source: GKE documentation, "Configure maximum
Pods per node", read 2026-11-25.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from infra.catalog import clients, ranges
from infra.catalog.gcp import facts
from infra.catalog.gcp.clusters import system_pods
from infra.errors import Problem, nearest_first

LARGEST_NETWORK: Final = 16
"""Prefix length; larger ranges overlap with other networks sooner than they are needed."""
SMALLEST_NETWORK: Final = 20
"""Prefix length. Below it the range for Cloud SQL, Lustre and Filestore is smaller than a /24, of which Cloud
SQL takes one for itself in a region (Cloud SQL documentation, "Allocated IP address ranges")."""
SERVICES_BITS: Final = 4
"""Cloud SQL, Lustre and Filestore get a sixteenth of the range: a prefix that is this many bits longer."""
_SQL_BLOCK, _LUSTRE_BLOCK, _HOMES_BLOCK = 24, 23, 24
"""Prefix lengths of the blocks that services take of it: Cloud SQL in a region, an instance of Managed Lustre
(Managed Lustre documentation, "Configure a VPC network"), a zonal or regional instance of Filestore (gcloud
reference, `filestore instances create`), read 2026-11-28."""
POD_BITS: Final = 1
"""Pods get one half of the range: a prefix that is this many bits longer."""


def region_problems(path: str, region: str) -> Iterator[Problem]:
    """The region is in the catalog."""
    if region not in facts.regions:
        fix = nearest_first(region, facts.regions)
        yield Problem(path, region, "unknown region", fix, code="unknown-region")


def zone_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Zones are of the region; one is enough, as a regional control plane runs in several anyway."""
    if not zones:
        yield Problem(path, [], "at least one zone is required", f"Write [{region}-b].", code="zone-missing")
    for index, zone in enumerate(zones):
        yield from zone_problem(f"{path}[{index}]", region, zone)


def zone_problem(path: str, region: str, zone: str) -> Iterator[Problem]:
    """A single zone is of the region; of an unknown region, only the name is checked."""
    row = facts.regions.get(region)
    if zone.rpartition("-")[0] != region or (row and zone not in row.zones):
        fix = f"{region} has {', '.join(row.zones)}." if row else f"Write it like {region}-b."
        yield Problem(path, zone, f"not a zone of {region}", fix, code="zone-not-in-region")


def range_problems(path: str, cidr: str) -> Iterator[Problem]:
    """The range of the network is private, unused by services, and holds nodes, pods and services."""
    network = ranges.parsed(path, cidr)
    if isinstance(network, Problem):
        yield network
        return
    if not LARGEST_NETWORK <= network.prefixlen <= SMALLEST_NETWORK:
        bounds = f"/{LARGEST_NETWORK} to /{SMALLEST_NETWORK}"
        rule = f"must be {bounds}: nodes, pods, services and databases take parts of it"
        largest = ipaddress.IPv4Network(f"{network.network_address}/{LARGEST_NETWORK}", strict=False)
        yield Problem(path, cidr, rule, f"Use {largest}.", code="network-size-not-supported")
    rule, taken = "not a private range", f"{ranges.TAKEN} is the bridge on every node"
    yield from ranges.space_problems(path, network, rule, taken)


def pod_block(pods_per_node: int) -> int:
    """The prefix length of a node's block of pod addresses."""
    return 32 - (2 * pods_per_node - 1).bit_length()


def pod_addresses(pods_per_node: int) -> int:
    """The number of pod addresses that a node takes."""
    return 1 << (32 - pod_block(pods_per_node))


def nodes_by_pods(pods_per_node: int, *, jobs: int, system: int) -> dict[int, int]:
    """Number of nodes (jobs and system pool) by the pods that may run on each."""
    own = system_pods(pods_per_node)
    return {own: jobs + system} if own == pods_per_node else {pods_per_node: jobs, own: system}


def room_problems(path: str, cidr: str, nodes: Mapping[int, int], *, against: str = "") -> Iterator[Problem]:
    """The largest number of nodes, by the pods on each, fits into the range for pods.

    A `cidr` that is not a network is reported by `range_problems`.
    """
    try:
        room = ipaddress.IPv4Network(cidr).num_addresses >> POD_BITS
    except ValueError:
        return
    needed = sum(count * pod_addresses(pods) for pods, count in nodes.items())
    if needed > room:
        terms = " + ".join(
            f"{count} nodes x {pod_addresses(pods)} (a /{pod_block(pods)} for {pods} pods)"
            for pods, count in nodes.items()
            if count
        )
        rule = f"half of it, {room} addresses, is for pods, and they need {terms} = {needed}"
        yield Problem(path, cidr, rule, _more_room(cidr, needed), against=against, code="network-too-small")


def services_problems(path: str, cidr: str, *, homes: bool, shared_fs: bool) -> Iterator[Problem]:
    """The blocks of managed services fit into their part of the range; Cloud SQL always has one.

    A `cidr` that is not a network is reported by `range_problems`.
    """
    try:
        room = ipaddress.IPv4Network(cidr).num_addresses >> SERVICES_BITS
    except ValueError:
        return
    blocks = {"Cloud SQL": _SQL_BLOCK}
    blocks |= {"data.homes": _HOMES_BLOCK} if homes else {}
    blocks |= {"data.shared_fs": _LUSTRE_BLOCK} if shared_fs else {}
    needed = sum(1 << (32 - prefix) for prefix in blocks.values())
    if needed > room:
        terms = " + ".join(f"{1 << (32 - prefix)} ({name}, a /{prefix})" for name, prefix in blocks.items())
        rule = (
            f"a sixteenth of it, {room} addresses, is for managed services, and they take {terms} = {needed}"
        )
        prefix = 32 - SERVICES_BITS - (needed - 1).bit_length()
        start = ipaddress.IPv4Network(cidr).network_address
        fix = f"Use {ipaddress.IPv4Network(f'{start}/{prefix}', strict=False)}, or leave out one of these."
        yield Problem(path, cidr, rule, fix, code="network-too-small-for-services")


def api_problems(path: str, endpoint: str, access_path: str, cidrs: Sequence[str]) -> Iterator[Problem]:
    """The API server has either a DNS endpoint (access by IAM) or an address with allowed ranges."""
    yield from clients.api_access_problems(access_path, cidrs)
    for problem in facts.limits["authorized_networks"].problems(access_path, len(cidrs)):
        yield Problem(access_path, len(cidrs), problem.rule, "Join some of them.", code=problem.code)
    if endpoint == "dns" and cidrs:
        rule = "the API server has a DNS endpoint, so ranges have no effect: IAM controls access"
        fix = f"Leave it empty, or set {path} to ip."
        yield Problem(access_path, list(cidrs), rule, fix, against=path, code="api-ranges-without-address")
    if endpoint == "ip" and not cidrs:
        rule = "the API server would not be reachable: no range is allowed"
        fix = f"Name the ranges of your office or VPN, or set {path} to dns."
        yield Problem(access_path, [], rule, fix, against=path, code="api-without-ranges")


def bucket_zone_problems(
    path: str, zone: str, region: str, zones_path: str, zones: Sequence[str]
) -> Iterator[Problem]:
    """A zonal bucket is in a zone of the network, near the jobs that use it."""
    yield from zone_problem(path, region, zone)
    if zone not in zones:
        fix = f"Use one of {', '.join(zones)}."
        rule = "no node is in this zone"
        yield Problem(path, zone, rule, fix, against=zones_path, code="zone-not-of-network")


def _more_room(cidr: str, needed: int) -> str:
    prefix = 32 - POD_BITS - (needed - 1).bit_length()
    others = "fewer nodes, or fewer pods on each"
    if prefix < LARGEST_NETWORK:
        return f"Use {others}: even a /{LARGEST_NETWORK} is too small."
    start = ipaddress.IPv4Network(cidr).network_address
    return f"Use {ipaddress.IPv4Network(f'{start}/{prefix}', strict=False)}, {others}."
