"""Address blocks of a VPC's subnets (pure arithmetic).

A VPC is cut into eight equal blocks. Blocks 0-5 are the private subnets of zones a-f, block 6 is kept for
those of an internal load balancer, block 7 holds the public ones (an eighth of a block each: load balancers
and NAT gateways need few addresses, pods need many). A zone's letter decides its block, so zones can be
added, removed or reordered and no other subnet ever moves.

Pods get their addresses in /28 prefixes (VPC CNI prefix delegation), which need contiguous space. The upper
half of every private subnet is therefore reserved for prefixes; single addresses (nodes, EFA interfaces,
endpoints, file systems) are allocated from the lower half and cannot fragment it.
Sources: VPC user guide, "Subnet CIDR reservations"; EKS best practices guide, "Prefix mode for Linux".

    /16: private /19 = 8,187 usable addresses, of them 256 prefixes = 4,096 pods per zone; the others /22
    /20: private /23 =   507 usable addresses, of them  16 prefixes =   256 pods per zone; the others /26
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from infra.catalog.aws import network
from infra.catalog.pools import once_problems
from infra.errors import UserError

_BLOCK_BITS = 3
_BALANCER_BLOCK, _PUBLIC_BLOCK = 6, 7
_ZONE_LETTERS = "abcdef"


@dataclass(frozen=True)
class ZoneSubnets:
    """The address blocks of one zone, in CIDR notation. `pod_prefixes` is the upper half of `private`."""

    zone: str
    private: str
    public: str
    pod_prefixes: str
    balancer: str


def plan_subnets(cidr: str, region: str, zones: Sequence[str]) -> tuple[ZoneSubnets, ...]:
    """The subnets of each zone, in the order of `zones`.

    Raises UserError with every problem of the range and the zones (`infra.catalog.aws.network`).
    """
    problems = [
        *network.range_problems("cidr", cidr),
        *network.region_problems("region", region),
        *network.zone_problems("zones", region, zones),
        *once_problems("zones", zones),
    ]
    if problems:
        raise UserError(problems)
    blocks = list(ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=_BLOCK_BITS))
    return tuple(_zone_subnets(zone, blocks) for zone in zones)


def _zone_subnets(zone: str, blocks: Sequence[ipaddress.IPv4Network]) -> ZoneSubnets:
    slot = _ZONE_LETTERS.index(zone[-1])
    _, upper_half = blocks[slot].subnets()
    balancer, public = (
        str(list(blocks[block].subnets(prefixlen_diff=_BLOCK_BITS))[slot])
        for block in (_BALANCER_BLOCK, _PUBLIC_BLOCK)
    )
    return ZoneSubnets(
        zone=zone, private=str(blocks[slot]), public=public, pod_prefixes=str(upper_half), balancer=balancer
    )
