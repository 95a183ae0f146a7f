"""Checks of the address range of a network on every cloud."""

import ipaddress
from collections.abc import Iterator

from infra.errors import Problem

# RFC 1918, and the shared address space. Sources: VPC user guide of AWS, "VPC CIDR blocks"; AWS What's New,
# 2018-10, "Amazon EKS now supports additional VPC CIDR blocks"; VPC documentation of Google Cloud, Subnets.
_PRIVATE = tuple(
    ipaddress.IPv4Network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
TAKEN = ipaddress.IPv4Network("172.17.0.0/16")
"""Used by services of both clouds. "Some AWS services use the 172.17.0.0/16 CIDR range. To avoid future
conflicts, don't use this range when creating your VPC" (VPC user guide, "VPC CIDR blocks", read 2026-11-22).
"The IP range 172.17.0.0/16 is reserved for the Docker bridge network. Connections from any IP within that
range to Cloud SQL instances using private IP fail" (GoogleCloudPlatform/gcpdiag, read 2026-11-25)."""


def network(cidr: str) -> ipaddress.IPv4Network:
    """The network of `<address>/<prefix length>`, without host bits; raises ValueError for others.

    `ipaddress` also takes an address alone or a netmask, which the providers refuse (net.ParseCIDR of Go).
    """
    if not cidr.rpartition("/")[2].isdecimal() or "/" not in cidr:
        raise ValueError(f"{cidr!r} has no prefix length, such as /32")
    return ipaddress.IPv4Network(cidr)


def parsed(path: str, cidr: str) -> ipaddress.IPv4Network | Problem:
    """The network, or the problem that it is none."""
    try:
        return network(cidr)
    except ValueError as error:
        rule = f"not an IPv4 network ({error})"
    return Problem(path, cidr, rule, f"Write {nearest(cidr, '10.0.0.0/16')}.", code="not-an-ipv4-network")


def nearest(cidr: str, example: str) -> str:
    """The network in which an address lies: /32 for an address alone; a network such as `example` if none."""
    try:
        return str(ipaddress.IPv4Network(cidr, strict=False))
    except ValueError:
        return f"a network such as {example}"


def space_problems(path: str, network: ipaddress.IPv4Network, rule: str, taken: str) -> Iterator[Problem]:
    """The range is private, else `rule` is broken, and not one of services, else `taken`."""
    if not any(network.subnet_of(space) for space in _PRIVATE):
        fix = f"Use a network within {', '.join(map(str, _PRIVATE))}."
        yield Problem(path, str(network), rule, fix, code="network-not-private")
    elif network.overlaps(TAKEN):
        fix = "Use 172.18.0.0/16 or 10.0.0.0/16."
        yield Problem(path, str(network), taken, fix, code="network-range-in-use")
