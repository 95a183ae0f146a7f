"""Address ranges that a VPC network and its GKE cluster can have, and how many nodes fit into them.

GKE gives each node a block of pod addresses, at least twice as many as pods may run on it, so that a pod's
address is not used again at once: /26 for 32 pods, /24 for 110. Source: GKE documentation, "Configure maximum
Pods per node", read 2026-11-25.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from infra.errors import Problem

LARGEST: Final = 16
"""Prefix length; our own limit, that of a stack on AWS too."""
SMALLEST: Final = 20
"""Prefix length. Below it the range for Cloud SQL, Lustre and Filestore is smaller than a /24, of which Cloud
SQL takes one for itself in a region (Cloud SQL documentation, "Allocated IP address ranges")."""
# RFC 1918 and RFC 6598; addresses that a public owner has are for others (VPC documentation, "Valid ranges").
_PRIVATE: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
# Docker's bridge has it, and machines with such an address reach no instance of Cloud SQL (Cloud SQL
# documentation, "Using private IP", on the range of the Docker bridge network).
_TAKEN: Final = ipaddress.IPv4Network("172.17.0.0/16")
POD_BITS: Final = 1
"""Pods get one half of the whole range: this many bits longer is its prefix."""


def range_problems(path: str, cidr: str) -> Iterator[Problem]:
    """The range is private, free, and of a size that the parts of a stack can be cut out of."""
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        yield Problem(path, cidr, f"not an IPv4 network ({error})", f"Write {_like(cidr)}.")
        return
    if not LARGEST <= network.prefixlen <= SMALLEST:
        rule = f"must be /{LARGEST} to /{SMALLEST}: nodes, pods, services and databases are cut out of it"
        yield Problem(path, cidr, rule, f"Use {_first(network)}/{LARGEST}.")
    if not any(network.subnet_of(space) for space in _PRIVATE):
        spaces = ", ".join(str(space) for space in _PRIVATE)
        yield Problem(path, cidr, "not a private range", f"Use a network within {spaces}.")
    elif network.overlaps(_TAKEN):
        yield Problem(
            path, cidr, f"{_TAKEN} is the bridge on every node", "Use 172.18.0.0/16 or 10.0.0.0/16."
        )


def pod_block(pods_per_node: int) -> int:
    """The prefix length of a node's block of pod addresses."""
    return 32 - (2 * pods_per_node - 1).bit_length()


def pod_addresses(pods_per_node: int) -> int:
    """The number of pod addresses that a node takes."""
    return 1 << (32 - pod_block(pods_per_node))


def pod_range_addresses(cidr: str) -> int:
    """The number of addresses of the range for pods."""
    return ipaddress.IPv4Network(cidr).num_addresses >> POD_BITS


def room_problems(path: str, cidr: str, nodes: Mapping[int, int]) -> Iterator[Problem]:
    """The largest number of nodes (by how many pods may run on each) fits into the range for pods.

    `cidr` has to be a range without problems. The rule shows the arithmetic.
    """
    room = pod_range_addresses(cidr)
    needed = sum(count * pod_addresses(pods) for pods, count in nodes.items())
    if needed > room:
        terms = " + ".join(
            f"{count} nodes x {pod_addresses(pods)} (a /{pod_block(pods)} for {pods} pods)"
            for pods, count in nodes.items()
            if count
        )
        rule = f"half of it, {room} addresses, is for pods, and they need {terms} = {needed}"
        yield Problem(path, cidr, rule, _more_room(cidr, needed))


def _more_room(cidr: str, needed: int) -> str:
    prefix = 32 - POD_BITS - (needed - 1).bit_length()
    others = "fewer nodes, or fewer pods on each"
    if prefix < LARGEST:
        return f"Have {others}: even a /{LARGEST} is too small."
    start = ipaddress.IPv4Network(cidr).network_address
    address = ipaddress.IPv4Network(f"{start}/{prefix}", strict=False).network_address
    return f"Use {address}/{prefix}, {others}."


def _first(network: ipaddress.IPv4Network) -> ipaddress.IPv4Address:
    """The first address of the /16 around a range."""
    return ipaddress.IPv4Network(f"{network.network_address}/{LARGEST}", strict=False).network_address


def _like(cidr: str) -> str:
    """The network that an address with host bits lies in, else an example."""
    try:
        return str(ipaddress.IPv4Network(cidr, strict=False))
    except ValueError:
        return "a network such as 10.0.0.0/16"
