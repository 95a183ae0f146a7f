"""Rules in the blocks of security groups, and of the older type, whose checks are the provider's own.

Both name the ports of all protocols, which the newer types leave out. Source:
hashicorp/terraform-provider-aws internal/service/ec2/vpc_security_group.go (expandIPPerms),
vpc_security_group_rule.go (expandIPPermission).
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import items, number, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import each, join, known
from rehearsal.core.rules.model import Violation

GROUP, DEFAULT = "ec2/securityGroup:SecurityGroup", "ec2/defaultSecurityGroup:DefaultSecurityGroup"
RULE = "ec2/securityGroupRule:SecurityGroupRule"
_NEWER = tuple(f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule" for way in ("Ingress", "Egress"))
_GROUPS, _RULE = tuple(f"aws:{one}" for one in (GROUP, DEFAULT)), f"aws:{RULE}"
_BLOCKS = "hashicorp/terraform-provider-aws internal/service/ec2/vpc_security_group.go"
_SINGLE = "hashicorp/terraform-provider-aws internal/service/ec2/vpc_security_group_rule.go"
_PERMISSION = "botocore 1.44.5 ec2/2016-11-15 IpPermission"
_PORTS = ("fromPort", "toPort")
# Number of a protocol -> its name in the state. Source: _BLOCKS (securityGroupProtocolIntegers).
_NAMES = {"all": "-1", "6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6"}
_RANGES = {"tcp": (0, 65535), "udp": (0, 65535), "icmp": (-1, 255), "icmpv6": (-1, 255)}
# Properties with address ranges, of every type of rule.
_IPV4, _IPV6 = ("cidrBlocks[]", "cidrIpv4"), ("ipv6CidrBlocks[]", "cidrIpv6")


def protocol_of(value: Any) -> str:
    """The name of a protocol as the provider keeps it: in lower case, `-1` for all."""
    name = str(value).lower()
    return _NAMES.get(name, name)


def _permissions(inputs: Properties) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The permissions of a group or rule, each with its path."""
    if known(inputs.get("protocol")) or known(inputs.get("ipProtocol")):
        yield "", inputs
    for way in ("ingress", "egress"):
        yield from items(inputs, way)


@BOOK.rule("AWS-SG-005", *_GROUPS, source=_BLOCKS)
def all_protocols_have_port_zero(inputs: Properties) -> Iterator[Violation]:
    """A block for all protocols has 0 for both ports."""
    for path, one in _permissions(inputs):
        if protocol_of(one.get("protocol")) == "-1":
            for name in _PORTS:
                if number(one.get(name)):
                    message = 'from_port and to_port must both be 0 to use the "ALL" "-1" protocol'
                    yield Violation(join(path, name), message, "Write 0 for both, or name a protocol.")


@BOOK.rule_around("AWS-SG-006", _RULE, source=_SINGLE, advice=True)
def all_protocols_open_all_ports(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A rule for all protocols opens all ports, whichever it names."""
    ports = [number(inputs.get(name)) for name in _PORTS]
    if protocol_of(inputs.get("protocol")) == "-1" and any(ports) and ports not in ([0, 65535], [-1, -1]):
        message = f"protocol {inputs.get('protocol')} opens all ports: the ports of this rule are not used"
        yield Violation("protocol", message, "Name a protocol, or write 0 for both ports.", advice=True)


@BOOK.rule("AWS-SG-007", *_GROUPS, _RULE, source=_PERMISSION)
def ports_in_range(inputs: Properties) -> Iterator[Violation]:
    """Ports of TCP and UDP are 0 to 65535 and in order; types and codes of ICMP are -1 to 255."""
    for path, one in _permissions(inputs):
        protocol = protocol_of(one.get("protocol"))
        least, most = _RANGES.get(protocol, (-1, 65535))
        ports = {name: number(one.get(name)) for name in _PORTS}
        for name, port in ports.items():
            if port is not None and not least <= port <= most:
                message = f"{port:.0f} is not between {least} and {most}, as of protocol {protocol}"
                yield Violation(join(path, name), message)
        first, last = ports["fromPort"], ports["toPort"]
        if protocol in ("tcp", "udp") and first is not None and last is not None and first > last:
            yield Violation(join(path, "toPort"), f"the range {first:.0f} to {last:.0f} is empty")


@BOOK.rule("AWS-SG-008", *_GROUPS, _RULE, *_NEWER, source=f"{_BLOCKS} (ValidIPv4CIDRNetworkAddress)")
def ranges_are_networks(inputs: Properties) -> Iterator[Violation]:
    """An address range is a network address without host bits."""
    for path, one in _permissions(inputs):
        for names, version in ((_IPV4, 4), (_IPV6, 6)):
            for name in names:
                for inner, value in each(one, name):
                    problem = network_problem(value, version)
                    if problem is not None:
                        yield Violation(f"{path}.{inner}" if path else inner, *problem)


def network_problem(value: Any, version: int) -> tuple[str, str] | None:
    """(message, fix) for a text that is no network address of an IP version; None for other values."""
    block = text(value)
    if block is None:
        return None
    kind = ipaddress.IPv4Network if version == 4 else ipaddress.IPv6Network
    message = f"{block} is not a valid IPv{version} CIDR block"
    try:
        network = kind(block, strict=False)
    except ValueError:
        return message, f"Write it like {'10.0.0.0/16' if version == 4 else '2001:db8::/32'}."
    if "/" in block and ipaddress.ip_address(block.partition("/")[0]) == network.network_address:
        return None
    return message, f"Did you mean {network}?"
