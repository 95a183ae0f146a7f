"""Security groups and their rules, in each form of the provider."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from policies.resource import Resource, is_unknown
from policies.rules.properties import raw
from policies.stack import Stack

GROUP, DEFAULT = "aws:ec2/securityGroup:SecurityGroup", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
PREFIX_LIST = "aws:ec2/managedPrefixList:ManagedPrefixList"
_ENTRY = "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry"
Way = Literal["ingress", "egress"]
_EVERYTHING = ("-1", "all")
_TCP = ("tcp", "6")
LISTS = ("prefixListId", "prefixListIds")


@dataclass(frozen=True)
class OpenPorts:
    """TCP ports that a rule opens to ranges; `path` is its place in the resource."""

    path: str
    ranges: tuple[Any, ...]
    low: int
    high: int
    unresolved: tuple[Any, ...] = ()
    """Prefix lists and groups of addresses, whose ranges a rule does not contain."""

    def admits(self, port: int) -> bool:
        """Return whether a TCP port is open."""
        return self.low <= port <= self.high


def open_ports(resource: Resource, way: Way) -> Iterator[OpenPorts]:
    """The TCP ports that the rules of a security group, or a separate rule, open to ranges."""
    props = resource.props
    if resource.kind in (INGRESS, EGRESS):
        if resource.kind == (INGRESS if way == "ingress" else EGRESS):
            ranges = tuple(one for one in (props.get("cidrIpv4"), props.get("cidrIpv6")) if one)
            yield from _ports_of("", props, "ipProtocol", ranges)
    elif resource.kind == RULE:
        if props.get("type") == way:
            yield from _ports_of("", props, "protocol", _ranges(props))
    else:
        for path, rule in resource.items(way):
            yield from _ports_of(path, rule, "protocol", _ranges(rule))


def _ranges(rule: Any) -> tuple[Any, ...]:
    return (*(rule.get("cidrBlocks") or ()), *(rule.get("ipv6CidrBlocks") or ()))


def _ports_of(path: str, rule: Any, protocol: str, ranges: tuple[Any, ...]) -> Iterator[OpenPorts]:
    named, lists = _protocol(rule, protocol), tuple(_prefix_lists(rule))
    if named in _EVERYTHING:
        yield OpenPorts(path, ranges, 0, 65535, lists)
    elif named in _TCP:
        low, high = rule.get("fromPort"), rule.get("toPort")
        # Without ports, and with -1 for them, all (EC2 API, IpPermission).
        every = low in (None, -1, "-1")
        yield OpenPorts(path, ranges, *((0, 65535) if every else (int(low), int(high or low))), lists)


def _protocol(rule: Any, key: str) -> str:
    """The protocol in lower case, as the provider sends it (protocolForValue, ec2/vpc_security_group.go)."""
    return str(rule.get(key)).lower()


def _prefix_lists(rule: Any) -> Iterator[Any]:
    for key in LISTS:
        value = raw(rule, key)
        if is_unknown(value) or isinstance(value, str):
            yield from (value,) if is_unknown(value) or value else ()
        else:
            yield from value or ()


def ranges_of_list(prefix_list: Resource, stack: Stack) -> Iterator[Any]:
    """The ranges of a prefix list of the stack, also those of separate entries."""
    for _, entry in prefix_list.items("entries"):
        yield entry.get("cidr")
    for one in stack.users(prefix_list, _ENTRY, "prefixListId"):
        yield one.props.get("cidr")


def open_to_itself(group: Resource, stack: Stack, way: Way) -> bool:
    """Return whether a security group allows all traffic from (or to) itself, by its own id.

    Raises UndeterminedError if the group of a rule is unknown.
    """
    for _, rule in group.items(way):
        if _protocol(rule, "protocol") in _EVERYTHING and rule.get("self") is True:
            return True
    for rule in stack.users(group, RULE, "securityGroupId"):
        everything = _protocol(rule.props, "protocol") in _EVERYTHING
        own = rule.props.get("self") is True or _names(rule, "sourceSecurityGroupId", group, stack)
        if rule.props.get("type") == way and everything and own:
            return True
    kind = INGRESS if way == "ingress" else EGRESS
    return any(
        _protocol(rule.props, "ipProtocol") in _EVERYTHING
        and _names(rule, "referencedSecurityGroupId", group, stack)
        for rule in stack.users(group, kind, "securityGroupId")
    )


def _names(rule: Resource, property: str, group: Resource, stack: Stack) -> bool:
    value = rule.raw(property)
    if not is_unknown(value) and not value:
        return False
    return stack.target(rule, property, GROUP) is group
