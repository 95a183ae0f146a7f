"""Ports that rules of firewall policies, and prefix lists of the stack, open to the world."""

from typing import Any

import pytest

from policies.resource import Resource
from tests.policies.rules.judging import judged, made
from tests.policies.rules.test_network import INGRESS

SSH, SOURCE = {"ipProtocol": "tcp", "ports": ["22"]}, {"srcIpRanges": ["10.0.0.0/8", "0.0.0.0/0"]}


def policy_rule(kind: str = "NetworkFirewallPolicyRule", **props: Any) -> Resource:
    """A rule of a firewall policy that admits SSH from everywhere, with changes."""
    match = {"layer4Configs": [SSH], **SOURCE, **props.pop("match", {})}
    name = f"gcp:compute/{kind[0].lower()}{kind[1:]}:{kind}"
    rule = {"action": "allow", "direction": "INGRESS", "match": match, **props}
    return made(name, **({"rules": [{}, rule]} if kind.endswith("WithRules") else rule))


PLACE = "match.layer4Configs[0]"


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        (policy_rule(), f"fail {PLACE}"),
        (policy_rule("RegionNetworkFirewallPolicyRule"), f"fail {PLACE}"),
        (policy_rule("FirewallPolicyRule"), f"fail {PLACE}"),
        (policy_rule("NetworkFirewallPolicyWithRules"), f"fail rules[1].{PLACE}"),
        (policy_rule("FirewallPolicyWithRules"), f"fail rules[1].{PLACE}"),
        (policy_rule("RegionNetworkFirewallPolicyWithRules"), f"fail rules[1].{PLACE}"),
        (policy_rule(action="apply_security_profile_group"), f"fail {PLACE}"),
        (policy_rule(action="deny"), "not-applicable"),
        (policy_rule(action="goto_next"), "not-applicable"),
        (policy_rule(direction="EGRESS"), "not-applicable"),
        (policy_rule(disabled=True), "not-applicable"),
        (policy_rule(match={"layer4Configs": [{"ipProtocol": "all"}]}), f"fail {PLACE}"),
        (policy_rule(match={"layer4Configs": [{"ipProtocol": "udp"}]}), "pass"),
        (policy_rule(match={"layer4Configs": [{"ipProtocol": "tcp", "ports": ["443"]}]}), "pass"),
        (policy_rule(match={"srcIpRanges": ["10.0.0.0/8"]}), "pass"),
        (policy_rule(match={"srcNetworkContext": "INTRA_VPC"}), "pass"),
        (policy_rule(match={"srcNetworkScope": "NON_INTERNET"}), "pass"),
        (policy_rule(match={"srcNetworkContext": "INTERNET"}), f"fail {PLACE}"),
        (policy_rule(match={"srcIpRanges": [], "srcRegionCodes": ["CH"]}), "pass"),
        (policy_rule(match={"srcIpRanges": [], "srcSecureTags": [{"name": "tagValues/1"}]}), "pass"),
        (policy_rule(match={"srcIpRanges": [], "srcAddressGroups": ["offices"]}), "undetermined"),
    ],
)
def test_rules_of_a_firewall_policy(resource: Resource, said: str) -> None:
    assert judged("MLS-NET-07", resource) == {"it": said}


LIST = "aws:ec2/managedPrefixList:ManagedPrefixList"
ENTRY = "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry"
TO_LIST = made(INGRESS, "rule", ipProtocol="tcp", fromPort=22, toPort=22, prefixListId="pl-1")


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([made(LIST, "pl-1", entries=[{"cidr": "10.0.0.0/8"}, {"cidr": "0.0.0.0/0"}])], "fail"),
        ([made(LIST, "pl-1", entries=[{"cidr": "10.0.0.0/8"}])], "pass"),
        ([made(LIST, "pl-1"), made(ENTRY, "world", prefixListId="pl-1", cidr="::/0")], "fail"),
        ([made(LIST, "pl-1"), made(ENTRY, "world", prefixListId="pl-2", cidr="::/0")], "pass"),
        ([made(LIST, "pl-2", entries=[{"cidr": "0.0.0.0/0"}])], "undetermined"),
    ],
)
def test_a_prefix_list_of_the_stack_is_read(others: list[Resource], said: str) -> None:
    assert judged("MLS-NET-07", TO_LIST, *others)["rule"] == said
