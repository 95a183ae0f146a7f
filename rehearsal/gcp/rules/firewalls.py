"""Firewall rules, and subnetworks of the region of what uses them."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation
from rehearsal.gcp import facts
from rehearsal.gcp.rules.book import BOOK, ProjectView, items

_FIREWALL = "gcp:compute/firewall:Firewall"
_CODE = "hashicorp/terraform-provider-google@e03b7622: google/services/compute/resource_compute_firewall.go"
_API = "Compute Engine API, firewalls (allowed[].IPProtocol, allowed[].ports, sourceRanges)"
_PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "ipip", "sctp", "all")
_WITH_PORTS = ("tcp", "udp", "sctp", "6", "17", "132")
_SOURCES = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
# Type -> paths of its subnetworks.
_USERS = {
    "gcp:compute/instance:Instance": ("networkInterfaces.subnetwork",),
    "gcp:compute/address:Address": ("subnetwork",),
    "gcp:compute/forwardingRule:ForwardingRule": ("subnetwork",),
    "gcp:container/cluster:Cluster": ("subnetwork",),
    "gcp:compute/routerNat:RouterNat": ("subnetworks.name",),
    "gcp:workbench/instance:Instance": ("gceSetup.networkInterfaces.subnet",),
    "gcp:cloudrunv2/service:Service": ("template.vpcAccess.networkInterfaces.subnetwork",),
    "gcp:cloudrunv2/job:Job": ("template.template.vpcAccess.networkInterfaces.subnetwork",),
}
_REGION = re.compile(r"(?:.*/)?regions/([^/]+)/subnetworks/[^/]+")


@BOOK.rule("GCP-COMPUTE-018", _FIREWALL, source=f"{_CODE} (resourceComputeFirewallSourceFieldsCustomizeDiff)")
def _has_a_source(inputs: Properties) -> Iterator[Violation]:
    """A rule for incoming traffic has a source; one for outgoing traffic has none."""
    direction = inputs.get("direction", "INGRESS")
    given = [name for name in _SOURCES if inputs.get(name) not in (None, [])]
    if direction == "INGRESS" and not given:
        message = "one of sourceRanges, sourceTags, or sourceServiceAccounts must be defined"
        yield Violation("sourceRanges", message, 'For every source give ["0.0.0.0/0"].')
    if direction == "EGRESS":
        for name in given:
            yield Violation(name, f"{name} cannot be set with direction EGRESS", "Use destinationRanges.")


@BOOK.rule("GCP-COMPUTE-019", _FIREWALL, source=_API)
def _protocols(inputs: Properties) -> Iterator[Violation]:
    """A firewall rule is about known protocols, ports of those that have ports, and ranges."""
    for group in ("allows", "denies"):
        for index, row in enumerate(items(inputs.get(group))):
            if isinstance(row, dict):
                yield from _protocol(f"{group}[{index}]", row)
    for name in ("sourceRanges", "destinationRanges"):
        for path, value in each(inputs, f"{name}[]"):
            if isinstance(value, str) and not _is_range(value):
                message = f"Invalid value for field '{name}': '{value}'. Must be a valid CIDR address range"
                yield Violation(path, message, "Write it like 10.0.0.0/8.")


def _protocol(path: str, row: dict[str, Any]) -> Iterator[Violation]:
    protocol = row.get("protocol")
    if not isinstance(protocol, str):
        return
    plain = protocol.lower()
    if plain not in _PROTOCOLS and not (plain.isdecimal() and int(plain) <= 255):
        yield Violation(f"{path}.protocol", f"{protocol} is not one of {', '.join(_PROTOCOLS)} or a number")
        return
    for place, port in each(row, "ports[]"):
        form = _PORTS.fullmatch(str(port))
        first, last = (int(form[1]), int(form[2] or form[1])) if form else (1, 0)
        if plain not in _WITH_PORTS:
            yield Violation(
                f"{path}.{place}", f"ports can only be specified for tcp, udp and sctp, not {protocol}"
            )
        elif not 0 <= first <= last <= 65535:
            yield Violation(
                f"{path}.{place}", f"{port} is not a port or a range of ports, such as 80 or 8000-8080"
            )


def _is_range(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True


@BOOK.rule_around(
    "GCP-COMPUTE-020",
    *_USERS,
    source="Compute Engine documentation, Subnets (regional resources)",
)
def _region_of_the_subnetwork(inputs: Properties, world: ProjectView) -> Iterator[Violation]:
    """A resource and the subnetwork that it uses are in one region."""
    place = inputs.get("zone") or inputs.get("location") or inputs.get("region")
    for name in ("zone", "location", "region"):
        place = place or world.places.get(name)
    if not isinstance(place, str) or UNKNOWN in (
        inputs.get("zone"),
        inputs.get("location"),
        inputs.get("region"),
    ):
        return
    region = facts.region_of(place.rpartition("/")[2])
    for path in dict.fromkeys(path for paths in _USERS.values() for path in paths):
        for here, value in each(inputs, path):
            theirs = _region_of(value, world)
            if region and theirs and theirs != region:
                message = f"Subnetwork {value} is in {theirs}, but this resource is in {region}"
                yield Violation(here, message, f"Use a subnetwork of {region}.", "badRequest")


def _region_of(value: object, world: ProjectView) -> str:
    form = _REGION.fullmatch(value) if isinstance(value, str) else None
    if form:
        return form[1]
    found = world.find(value, "compute/subnetwork:Subnetwork")
    return str(found.outputs.get("region") or "").rpartition("/")[2] if found else ""


@BOOK.rule("GCP-COMPUTE-026", _FIREWALL, source="kubernetes/kops pull request 12170 (one family in a rule)")
def _one_family(inputs: Properties) -> Iterator[Violation]:
    """The ranges of a firewall rule are all of IPv4 or all of IPv6."""
    for name in ("sourceRanges", "destinationRanges"):
        ranges = [
            value for _, value in each(inputs, f"{name}[]") if isinstance(value, str) and _is_range(value)
        ]
        if len({":" in value for value in ranges}) > 1:
            yield Violation(name, "IPv4 and IPv6 ranges are mixed", "Write one rule for each.", "invalid")
