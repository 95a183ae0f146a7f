"""Checks of address ranges, zones, regions and endpoints on AWS."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog import ranges
from infra.catalog.aws import facts
from infra.errors import Problem, nearest_first

LARGEST_VPC: Final = 16
"""Prefix length. Source: VPC user guide, "VPC CIDR blocks", read 2026-11-22."""
SMALLEST_VPC: Final = 20
"""Prefix length. Below it a zone of ours holds fewer pods than the 110 each that two nodes may run."""


def range_problems(path: str, cidr: str) -> Iterator[Problem]:
    """The range of the VPC is private, unused by services, and holds nodes, pods and EFA interfaces."""
    network = ranges.parsed(path, cidr)
    if isinstance(network, Problem):
        yield network
        return
    if not LARGEST_VPC <= network.prefixlen <= SMALLEST_VPC:
        rule = f"must be /{LARGEST_VPC} (the largest VPC) to /{SMALLEST_VPC} (room for pods in every zone)"
        fix = f"Use {network.network_address}/{LARGEST_VPC}."
        yield Problem(path, cidr, rule, fix, code="network-size-not-supported")
    rule, taken = "not a private range that EKS supports", f"AWS services use {ranges.TAKEN}"
    yield from ranges.space_problems(path, network, rule, taken)


def zone_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Zones of the region, at least two different ones: EKS places its control plane in two."""
    yield from zone_name_problems(path, region, zones)
    if len(set(zones)) < 2:
        fix = f"Add another zone of {region}, such as {region}b."
        rule = "EKS needs subnets in at least two zones"
        yield Problem(path, list(zones), rule, fix, code="needs-two-zones")


def eks_zone_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """A few zones, known by id, have no EKS.

    Accounts name zones differently, so the check can only detect that too many are named.
    """
    row = facts.regions.get(region)
    without = set(row.zone_ids) & set(facts.eks.zones_without) if row else set()
    if row and len(set(zones)) > len(row.zone_ids) - len(without) > 0:
        fix = "Leave that zone out; `aws ec2 describe-availability-zones` shows the ids of your zones."
        rule = f"EKS is not available in {', '.join(sorted(without))}"
        yield Problem(path, list(zones), rule, fix, code="zone-without-eks")


def zone_name_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Zones are zones of the region; of an unknown region, nothing is checked."""
    row = facts.regions.get(region)
    for index, zone in enumerate(zones if row else ()):
        if row and zone not in row.zones:
            fix = f"{region} has {', '.join(row.zones)}."
            yield Problem(f"{path}[{index}]", zone, f"not a zone of {region}", fix, code="zone-not-in-region")


def region_problems(path: str, region: str) -> Iterator[Problem]:
    """The region is in the catalog."""
    if region not in facts.regions:
        fix = nearest_first(region, facts.regions)
        yield Problem(path, region, "unknown region", fix, code="unknown-region")


def endpoint_problems(path: str, region: str, services: Sequence[str]) -> Iterator[Problem]:
    """Interface endpoints by the end of their service names: known, offered in the region, each once."""
    for index, service in enumerate(services):
        at, gap = f"{path}[{index}]", facts.endpoint_gaps.get(service)
        if service not in facts.endpoints:
            name = service.removeprefix(f"com.amazonaws.{region}.")
            near = difflib.get_close_matches(name, sorted(facts.endpoints))
            fix = f"Perhaps {' or '.join(near)} is meant." if near else "Write it like ecr.api."
            rule = "not a service with an interface endpoint"
            yield Problem(at, service, rule, fix, code="unknown-endpoint-service")
        elif gap and region in gap.regions:
            rule, fix = f"{region} has no such endpoint", "Remove it."
            yield Problem(at, service, rule, fix, code="endpoint-not-in-region")
    if len(set(services)) != len(services):
        rule, fix = "a service is named twice", "Name each once."
        yield Problem(path, list(services), rule, fix, code="service-named-twice")
