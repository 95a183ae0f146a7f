"""Openings of a security group, from its inline and separate rules."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.aws.rules.book import AwsContext
from rehearsal.aws.rules.reading import number
from rehearsal.core.model import Record
from rehearsal.core.properties import each

GROUP = "ec2/securityGroup:SecurityGroup"
_ALL, _TCP = ("-1", "all"), ("tcp", "6")


@dataclass(frozen=True)
class Opening:
    """One rule: its protocol, its ports, and whether its peer is the group itself."""

    protocol: str
    first: float | None
    last: float | None
    own: bool

    @property
    def everything(self) -> bool:
        """True for all protocols and ports."""
        return self.protocol in _ALL

    def tcp(self, port: int) -> bool:
        """Return whether it includes a TCP port."""
        if self.everything:
            return True
        ports = self.first is not None and self.last is not None and self.first <= port <= self.last
        return self.protocol in _TCP and ports


def openings(site: AwsContext, group: Record, direction: str) -> Iterator[Opening]:
    """The rules of a group in one direction: "ingress" or "egress"."""
    for _, rule in each(group.outputs, f"{direction}[]"):
        if isinstance(rule, Mapping):
            own = rule.get("self") is True or group.id in (rule.get("securityGroups") or [])
            yield _opening(rule, "protocol", own)
    kind = direction.capitalize()
    for one in site.users(group, f"vpc/securityGroup{kind}Rule:SecurityGroup{kind}Rule"):
        if one.outputs.get("securityGroupId") == group.id:
            yield _opening(
                one.outputs, "ipProtocol", one.outputs.get("referencedSecurityGroupId") == group.id
            )
    for one in site.users(group, "ec2/securityGroupRule:SecurityGroupRule"):
        if one.outputs.get("securityGroupId") == group.id and one.outputs.get("type") == direction:
            own = one.outputs.get("self") is True or one.outputs.get("sourceSecurityGroupId") == group.id
            yield _opening(one.outputs, "protocol", own)


def _opening(rule: Mapping[str, Any], protocol: str, own: bool) -> Opening:
    first, last = number(rule.get("fromPort")), number(rule.get("toPort"))
    return Opening(str(rule.get(protocol)).lower(), first, last, own)
