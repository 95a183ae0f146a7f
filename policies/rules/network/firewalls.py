"""Firewall rules of Google Cloud: of a VPC network, and of firewall policies."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import NotApplicableError
from policies.resource import Resource
from policies.rules.network.security_groups import OpenPorts
from policies.rules.properties import each

FIREWALL = "gcp:compute/firewall:Firewall"
_RULES = ("networkFirewallPolicy", "regionNetworkFirewallPolicy", "firewallPolicy")
POLICY_RULES = tuple(
    f"gcp:compute/{name}{form}:{name[0].upper()}{name[1:]}{form}"
    for name in _RULES
    for form in ("Rule", "WithRules")
)
_TCP = ("tcp", "6", "all")
# `apply_security_profile_group` inspects connections and admits the others (Cloud NGFW, "Firewall policy
# rules", action on match); `goto_next` leaves them to the next policy.
_ADMITS = ("allow", "apply_security_profile_group")
# A packet has to match the network context and one of the other sources (Cloud NGFW, "Network contexts").
_WITHIN = ("NON_INTERNET", "VPC_NETWORKS", "INTRA_VPC")


def open_ports_of_firewall(firewall: Resource) -> Iterator[OpenPorts]:
    """The TCP ports that a firewall rule, or a rule of a policy, opens to ranges.

    Raises NotApplicableError if it admits no ingress.
    """
    if firewall.kind == FIREWALL:
        props = firewall.props
        if not _is_ingress(props):
            raise NotApplicableError("it allows no ingress")
        for path, allowed in firewall.items("allows"):
            yield from _ports(path, allowed, "protocol", _sources(props))
        return
    rules = [(path, rule) for path, rule in _rules(firewall) if _is_ingress(rule) and _admits(rule)]
    if not rules:
        raise NotApplicableError("it allows no ingress")
    for path, rule in rules:
        for below, match in each(rule, "match", path=path):
            within = (match.get("srcNetworkContext") or match.get("srcNetworkScope")) in _WITHIN
            ranges = () if within else tuple(match.get("srcIpRanges") or ())
            groups = () if within else tuple(match.get("srcAddressGroups") or ())
            for place, layer in each(match, "layer4Configs", path=below):
                yield from _ports(place, layer, "ipProtocol", ranges, groups)


def _rules(policy: Resource) -> Iterator[tuple[str, Any]]:
    if policy.kind.endswith("WithRules"):
        yield from policy.items("rules")
    else:
        yield "", policy.props


def _is_ingress(rule: Any) -> bool:
    return str(rule.get("direction") or "INGRESS").upper() == "INGRESS" and rule.get("disabled") is not True


def _admits(rule: Any) -> bool:
    return rule.get("action") in _ADMITS


def _ports(
    path: str, allowed: Any, protocol: str, ranges: tuple[Any, ...], groups: tuple[Any, ...] = ()
) -> Iterator[OpenPorts]:
    if str(allowed.get(protocol)).lower() in _TCP:
        for ports in allowed.get("ports") or ["0-65535"]:
            low, _, high = str(ports).partition("-")
            yield OpenPorts(path, ranges, int(low), int(high or low), groups)


def _sources(firewall: Any) -> tuple[Any, ...]:
    """Without ranges, tags and accounts, every source (Compute Engine API, firewalls.sourceRanges)."""
    ranges = tuple(firewall.get("sourceRanges") or ())
    others = any(firewall.get(key) for key in ("sourceTags", "sourceServiceAccounts"))
    return ranges if ranges or others else ("0.0.0.0/0",)
