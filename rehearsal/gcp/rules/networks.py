"""Networks, ranges, NAT, firewalls, addresses and placement policies."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.gcp.rules.book import BOOK, ProjectView, block, items

_DOCS = "hashicorp/terraform-provider-google@e03b7622: website/docs/r/"
_CODE = "hashicorp/terraform-provider-google@e03b7622: google/"
NETWORK, SUBNETWORK = "gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork"
_FIREWALL, _NAT = "gcp:compute/firewall:Firewall", "gcp:compute/routerNat:RouterNat"
_CONNECTION = "gcp:servicenetworking/connection:Connection"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse(value: Any) -> Network | None:
    """A range in CIDR form with no host bits set, or None."""
    try:
        return ipaddress.ip_network(value) if isinstance(value, str) and "/" in value else None
    except ValueError:
        return None


@BOOK.rule("GCP-COMPUTE-003", SUBNETWORK, source=f"{_CODE}verify/validation.go (ValidateIpCidrRange)")
def _ranges(inputs: Properties) -> Iterator[Violation]:
    """Ranges of a subnetwork are in CIDR form."""
    found = [("ipCidrRange", inputs.get("ipCidrRange"))]
    for index, one in enumerate(items(inputs.get("secondaryIpRanges"))):
        found.append((f"secondaryIpRanges[{index}].ipCidrRange", block(one).get("ipCidrRange")))
    for path, value in found:
        if isinstance(value, str) and parse(value) is None:
            yield Violation(path, f"{value!r} is not a valid IP CIDR range", "Clear the host bits.")


def _own_ranges(inputs: Properties) -> list[tuple[str, Network]]:
    pairs = [("ipCidrRange", parse(inputs.get("ipCidrRange")))]
    for index, one in enumerate(items(inputs.get("secondaryIpRanges"))):
        pairs.append((f"secondaryIpRanges[{index}].ipCidrRange", parse(block(one).get("ipCidrRange"))))
    return [(path, network) for path, network in pairs if network is not None]


@BOOK.rule("GCP-COMPUTE-004", SUBNETWORK, source=f"{_DOCS}compute_subnetwork (ip_cidr_range)")
def _own_overlap(inputs: Properties) -> Iterator[Violation]:
    """Primary and secondary ranges of a subnetwork do not overlap."""
    seen: list[tuple[str, Network]] = []
    for path, network in _own_ranges(inputs):
        for other, before in seen:
            if network.overlaps(before):
                yield Violation(path, f"{network} overlaps {before} at {other}")
        seen.append((path, network))


@BOOK.rule("GCP-COMPUTE-005", SUBNETWORK, source=f"{_DOCS}compute_subnetwork (range_name)")
def _range_names(inputs: Properties) -> Iterator[Violation]:
    """The names of secondary ranges are unique within the subnetwork."""
    seen: set[str] = set()
    for index, one in enumerate(items(inputs.get("secondaryIpRanges"))):
        name = block(one).get("rangeName")
        if isinstance(name, str):
            if name in seen:
                yield Violation(f"secondaryIpRanges[{index}].rangeName", f"{name!r} is used twice")
            seen.add(name)


@BOOK.rule_around("GCP-COMPUTE-006", SUBNETWORK, source=f"{_DOCS}compute_subnetwork (ip_cidr_range)")
def _overlap(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Ranges are unique and do not overlap within a network."""
    network = world.find(inputs.get("network"), "compute/network:Network")
    if network is None:
        return
    for other in world.others("compute/subnetwork:Subnetwork"):
        if world.find(other.inputs.get("network"), "compute/network:Network") != network:
            continue
        for path, mine in _own_ranges(inputs):
            for _, theirs in _own_ranges(other.inputs):
                if mine.overlaps(theirs):
                    message = f"Invalid IPCidrRange: {mine} conflicts with existing subnetwork '{other.name}'"
                    yield Violation(path, message, f"{other.name} has {theirs}.", "badRequest")


@BOOK.rule("GCP-COMPUTE-007", _NAT, source=f"{_DOCS}compute_router_nat (nat_ips)")
def _nat_addresses(inputs: Properties) -> Iterator[Violation]:
    """NAT addresses are given if and only if they are allocated manually."""
    if UNKNOWN in (inputs.get("natIps"), inputs.get("natIpAllocateOption")):
        return
    manual = inputs.get("natIpAllocateOption") == "MANUAL_ONLY"
    if inputs.get("natIps") and not manual:
        yield Violation("natIps", "only valid if natIpAllocateOption is MANUAL_ONLY")


@BOOK.rule_around("GCP-COMPUTE-011", _CONNECTION, source=f"{_DOCS}service_networking_connection")
def _peering(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """Ranges reserved for a service are global addresses for peering."""
    for index, name in enumerate(items(inputs.get("reservedPeeringRanges"))):
        found = world.find(name, "compute/globalAddress:GlobalAddress")
        if found is not None and found.inputs.get("purpose") != "VPC_PEERING":
            yield Violation(
                f"reservedPeeringRanges[{index}]",
                f"{found.name} is not of purpose VPC_PEERING",
                "",
                "badRequest",
            )


@BOOK.rule(
    "GCP-COMPUTE-016",
    NETWORK,
    source="GoogleCloudPlatform/cluster-toolkit@10470803: modules/network/gpu-rdma-vpc/main.tf",
)
def _rdma_network(inputs: Properties) -> Iterator[Violation]:
    """A network of an RDMA profile has custom subnetworks."""
    profile = inputs.get("networkProfile")
    automatic = inputs.get("autoCreateSubnetworks", True)
    if isinstance(profile, str) and "-vpc-roce" in profile and automatic is True:
        yield Violation("autoCreateSubnetworks", "must be false in a network with an RDMA profile")


@BOOK.rule(
    "GCP-COMPUTE-017", _CONNECTION, source=f"{_DOCS}service_networking_connection (reserved_peering_ranges)"
)
def _no_range(inputs: Properties) -> Iterator[Violation]:
    """A connection names at least one reserved range."""
    if inputs.get("reservedPeeringRanges") == []:
        yield Violation("reservedPeeringRanges", "at least one range of purpose VPC_PEERING is needed")
