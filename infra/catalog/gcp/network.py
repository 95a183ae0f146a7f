"""Address ranges of a network, what of them nodes and pods take, zones, and the way to the API server."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from infra.catalog import clients
from infra.catalog.gcp import facts
from infra.errors import Problem

LARGEST_NETWORK: Final = 16
"""Prefix length; larger ranges overlap with those of others sooner than they are needed."""
SMALLEST_NETWORK: Final = 20
"""Prefix length. Below it, half of it holds pods of fewer than 32 nodes of 32 pods."""
# RFC 1918, and the shared address space. Source: VPC documentation, Subnets, valid IPv4 ranges.
_PRIVATE: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
# "The IP range 172.17.0.0/16 is reserved for the Docker bridge network. Connections from any IP within that
# range to Cloud SQL instances using private IP fail" (GoogleCloudPlatform/gcpdiag, lint of Cloud SQL, read
# 2026-11-25).
_TAKEN: Final = ipaddress.IPv4Network("172.17.0.0/16")


def region_problems(path: str, region: str) -> Iterator[Problem]:
    """The region is one whose zones and offers are known."""
    if region not in facts.regions:
        yield Problem(path, region, "unknown region", f"Known are {', '.join(sorted(facts.regions))}.")


def zone_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Zones are of the region; one is enough, for a regional control plane runs in several anyway."""
    row = facts.regions.get(region)
    for index, zone in enumerate(zones if row else ()):
        if row and zone not in row.zones:
            fix = f"{region} has {', '.join(row.zones)}."
            yield Problem(f"{path}[{index}]", zone, f"not a zone of {region}", fix)


def range_problems(path: str, cidr: str) -> Iterator[Problem]:
    """The range of the network is private, unused by services, and holds nodes, pods and services."""
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        yield Problem(path, cidr, f"not an IPv4 network ({error})", f"Write {_like(cidr)}.")
        return
    if not LARGEST_NETWORK <= network.prefixlen <= SMALLEST_NETWORK:
        rule = f"must be /{LARGEST_NETWORK} to /{SMALLEST_NETWORK} (room for pods)"
        yield Problem(path, cidr, rule, f"Use {network.network_address}/{LARGEST_NETWORK}.")
    if not any(network.subnet_of(space) for space in _PRIVATE):
        spaces = ", ".join(str(space) for space in _PRIVATE)
        yield Problem(path, cidr, "not a private range", f"Use a network within {spaces}.")
    elif network.overlaps(_TAKEN):
        yield Problem(path, cidr, f"Cloud SQL uses {_TAKEN} itself", "Use 172.18.0.0/16 or 10.0.0.0/16.")


def addresses_of_a_node(pods_per_node: int) -> int:
    """Addresses that GKE sets aside for the pods of a node: the next power of two from twice as many pods on.

    Source: GKE documentation, "Configure maximum Pods per node" (32 pods: /26, 110 pods: /24).
    """
    return 1 << (2 * pods_per_node - 1).bit_length()


def nodes_in(cidr: str, pods_per_node: int) -> int:
    """Nodes whose pods find addresses: pods get half of the network. Raises ValueError for no network."""
    return ipaddress.IPv4Network(cidr).num_addresses // 2 // addresses_of_a_node(pods_per_node)


def room_problems(
    path: str, cidr: str, pods_path: str, pods_per_node: int, nodes: Mapping[str, int]
) -> Iterator[Problem]:
    """The pools of these largest sizes, by name, fit into the network all at once."""
    yield from facts.limits["pods_per_node"].problems(pods_path, pods_per_node)
    try:
        room = nodes_in(cidr, pods_per_node)
    except ValueError:
        return  # `range_problems` says so
    wanted = sum(nodes.values())
    if wanted > room:
        each, half = addresses_of_a_node(pods_per_node), ipaddress.IPv4Network(cidr).num_addresses // 2
        counted = " + ".join(f"{count} of {name}" for name, count in nodes.items())
        rule = (
            f"{pods_per_node} pods per node take {each} addresses, and pods get half of the network, {half}: "
            f"that is {room} nodes, not {wanted} ({counted})"
        )
        fix = "Use a larger network, fewer pods per node, or smaller pools."
        yield Problem(path, cidr, rule, fix, against=pods_path)


def api_problems(path: str, endpoint: str, access_path: str, cidrs: Sequence[str]) -> Iterator[Problem]:
    """The API server is reached by its name as IAM admits, or by an address from ranges: one of both."""
    yield from clients.api_access_problems(access_path, cidrs)
    if endpoint == "dns" and cidrs:
        rule = "the API server has no address, so ranges admit nobody: IAM decides who reaches its name"
        yield Problem(access_path, list(cidrs), rule, f"Leave it empty, or set {path} to ip.", against=path)
    if endpoint == "ip" and not cidrs:
        rule = "nobody could reach the API server: it has an address, and no range may use it"
        fix = f"Name the ranges of your office or VPN, or set {path} to dns."
        yield Problem(access_path, [], rule, fix, against=path)


def bucket_zone_problems(
    path: str, zone: str, region: str, zones_path: str, zones: Sequence[str]
) -> Iterator[Problem]:
    """A zonal bucket is in a zone of the network, where the jobs are that ask for it."""
    yield from zone_problems_of_one(path, zone, region)
    if zone not in zones:
        fix = f"Use one of {', '.join(zones)}."
        yield Problem(path, zone, "no node is in this zone", fix, against=zones_path)


def zone_problems_of_one(path: str, zone: str, region: str) -> Iterator[Problem]:
    """A single zone is of the region."""
    row = facts.regions.get(region)
    if row and zone not in row.zones:
        fix = f"{region} has {', '.join(row.zones)}."
        yield Problem(path, zone, f"not a zone of {region}", fix)


def _like(cidr: str) -> str:
    """The network that an address with host bits lies in, else an example."""
    try:
        return str(ipaddress.IPv4Network(cidr, strict=False))
    except ValueError:
        return "a network such as 10.0.0.0/16"
