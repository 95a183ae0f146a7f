"""Where the subnets of a VPC lie: pure arithmetic on address blocks.

A VPC is cut into eight equal blocks. Blocks 0-5 are the private subnets of zones a-f, block 6 stays free, and
block 7 holds the public subnets (an eighth of a block each: load balancers and NAT gateways need few
addresses, pods need many). A zone's letter decides its block, so zones can be added, removed or reordered
and no other subnet ever moves.

Pods get their addresses in /28 prefixes (VPC CNI prefix delegation), which need contiguous space. The upper
half of every private subnet is therefore reserved for prefixes; single addresses (nodes, EFA interfaces,
endpoints, file systems) come out of the lower half and cannot fragment it.
Sources: VPC user guide, "Subnet CIDR reservations"; EKS best practices guide, "Prefix mode for Linux".

    /16: private /19 = 8,187 usable addresses, of them 256 prefixes = 4,096 pods per zone; public /22
    /20: private /23 =   507 usable addresses, of them  16 prefixes =   256 pods per zone; public /26
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from infra.errors import Problem, UserError

LARGEST_VPC = 16  # prefix length; a VPC cannot be larger (VPC user guide, "VPC CIDR blocks")
SMALLEST_VPC = 20  # below it a zone holds fewer pods than two nodes may run (110 each)

_BLOCK_BITS = 3
_PUBLIC_BLOCK = 7
_ZONE_LETTERS = "abcdef"
_ZONE = re.compile(r"(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)(?P<letter>[a-z])")
_PRIVATE_SPACE = tuple(
    ipaddress.IPv4Network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)


@dataclass(frozen=True)
class ZoneSubnets:
    """The address blocks of one zone, in CIDR notation. `pod_prefixes` is the upper half of `private`."""

    zone: str
    private: str
    public: str
    pod_prefixes: str


def plan_subnets(cidr: str, region: str, zones: Sequence[str]) -> tuple[ZoneSubnets, ...]:
    """The subnets of each zone, in the order of `zones`.

    Raises UserError with every problem when `cidr` is no private block of /16 to /20, or `zones` are not
    at least two different zones of `region` (EKS wants its control plane in two).
    """
    problems = [*_cidr_problems(cidr), *_zone_problems(region, zones)]
    if problems:
        raise UserError(problems)
    blocks = list(ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=_BLOCK_BITS))
    public = list(blocks[_PUBLIC_BLOCK].subnets(prefixlen_diff=_BLOCK_BITS))
    return tuple(_zone_subnets(zone, blocks, public) for zone in zones)


def _zone_subnets(
    zone: str, blocks: Sequence[ipaddress.IPv4Network], public: Sequence[ipaddress.IPv4Network]
) -> ZoneSubnets:
    slot = _ZONE_LETTERS.index(zone[-1])
    _, upper_half = blocks[slot].subnets()
    return ZoneSubnets(
        zone=zone, private=str(blocks[slot]), public=str(public[slot]), pod_prefixes=str(upper_half)
    )


def _cidr_problems(cidr: str) -> list[Problem]:
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        return [Problem("cidr", cidr, f"is no IPv4 block ({error})", "Write it like 10.0.0.0/16.")]
    problems = []
    if not LARGEST_VPC <= network.prefixlen <= SMALLEST_VPC:
        rule = f"must be between /{LARGEST_VPC} and /{SMALLEST_VPC} to leave room for pods in every zone"
        problems.append(Problem("cidr", cidr, rule, f"Use {network.network_address}/{LARGEST_VPC}."))
    if not any(network.subnet_of(space) for space in _PRIVATE_SPACE):
        spaces = ", ".join(str(space) for space in _PRIVATE_SPACE)
        problems.append(Problem("cidr", cidr, "is public address space", f"Use a block within {spaces}."))
    return problems


def _zone_problems(region: str, zones: Sequence[str]) -> list[Problem]:
    problems = []
    for index, zone in enumerate(zones):
        match = _ZONE.fullmatch(zone)
        if match is None or match["region"] != region or match["letter"] not in _ZONE_LETTERS:
            rule = f"is no zone of {region}"
            problems.append(Problem(f"zones[{index}]", zone, rule, f"Write it like {region}a."))
    if len(set(zones)) != len(zones):
        problems.append(Problem("zones", list(zones), "names a zone twice", "Name each zone once."))
    if len(set(zones)) < 2:
        fix = f"Add another, such as {region}b."
        problems.append(Problem("zones", list(zones), "EKS needs subnets in at least two zones", fix))
    return problems
