"""What GKE accepts as a cluster, and what a security review would refuse; all but facts of one machine."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog.gcp import facts
from infra.errors import Problem

# At most 40 characters (terraform-provider-google@e03b7622, google/services/container/resource_container_
# cluster.go).
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_MEMBER: Final = re.compile(r"(user|group|serviceAccount):[^@\s]+@[^@\s]+\.[^@\s]+")
_GROUP: Final = re.compile(r"gke-security-groups@[^@\s]+\.[^@\s]+")
_WIDEST_ACCESS: Final = 8
"""Prefix length of the widest range of clients, that of 10.0.0.0/8; our own limit."""
_ACCESS_RANGES: Final = 100
"""Authorized networks of a cluster (GKE documentation, "Quotas and limits")."""
LEAST_WINDOW_HOURS, WINDOW_DAYS = 48, 32
"""Hours of maintenance in any so many days (GKE documentation, "Maintenance windows and exclusions")."""


def name_problems(path: str, name: str) -> Iterator[Problem]:
    """The name of a cluster."""
    if not _NAME.fullmatch(name):
        rule = "must be at most 40 lower-case letters, digits and dashes, a letter first and no dash last"
        yield Problem(path, name, rule, "Give the stack a shorter name.")


def zone_problems(path: str, region: str, zones: Sequence[str]) -> Iterator[Problem]:
    """Zones of nodes are in the cluster's region, each once, at least one."""
    row = facts.regions.get(region)
    for index, zone in enumerate(zones):
        if zone.rpartition("-")[0] != region or (row and zone not in row.zones):
            fix = f"{region} has {', '.join(row.zones)}." if row else f"Write it like {region}-b."
            yield Problem(f"{path}[{index}]", zone, f"not a zone of {region}", fix)
    if not zones or len(set(zones)) != len(zones):
        yield Problem(path, list(zones), "must name one zone or more, each once", f"Write [{region}-b].")


def admin_problems(path: str, admins: Sequence[str]) -> Iterator[Problem]:
    """Somebody administers the cluster, and IAM knows all of them."""
    fix = "Write user:NAME@DOMAIN, group:NAME@DOMAIN or serviceAccount:NAME@PROJECT.iam.gserviceaccount.com."
    if not admins:
        yield Problem(path, [], "a cluster without an administrator cannot be used", fix)
    for index, member in enumerate(admins):
        if not _MEMBER.fullmatch(member):
            yield Problem(f"{path}[{index}]", member, "no user, group or service account", fix)
    if len(set(admins)) != len(admins):
        yield Problem(path, list(admins), "names one twice", "Name each once.")


def group_problems(path: str, group: str) -> Iterator[Problem]:
    """The group whose member groups RBAC knows is called as GKE asks ("Configure Google Groups for RBAC")."""
    if not _GROUP.fullmatch(group):
        yield Problem(path, group, "GKE takes no other group", "Write gke-security-groups@DOMAIN.")


def endpoint_problems(path: str, endpoint: str, access_path: str, ranges: Sequence[str]) -> Iterator[Problem]:
    """A public address is for named ranges; a DNS endpoint has no address that ranges could limit."""
    if endpoint == "dns" and ranges:
        rule = (
            "the DNS endpoint is reached from anywhere, by those that IAM admits; ranges limit nothing there"
        )
        fix = f"Empty it, or set {path} to ip. VPC Service Controls can limit a DNS endpoint to addresses."
        yield Problem(access_path, list(ranges), rule, fix, against=path)
    if endpoint == "ip" and not ranges:
        fix = f"Name the ranges of your office or VPN in {access_path}, or set dns."
        yield Problem(path, endpoint, "the public address is open to no range", fix, against=access_path)
    if len(ranges) > _ACCESS_RANGES:
        yield Problem(access_path, len(ranges), f"more than {_ACCESS_RANGES} ranges", "Join some of them.")
    fix = "Name the ranges of your office or VPN, such as 203.0.113.0/24."
    for index, cidr in enumerate(ranges):
        try:
            network = ipaddress.IPv4Network(cidr)
        except ValueError as error:
            yield Problem(f"{access_path}[{index}]", cidr, f"not an IPv4 network ({error})", fix)
            continue
        if network.prefixlen < _WIDEST_ACCESS:
            rule = f"wider than a /{_WIDEST_ACCESS}, it opens the Kubernetes API to the internet"
            yield Problem(f"{access_path}[{index}]", cidr, rule, fix)


def window_problems(path: str, days: Sequence[str], hours: int) -> Iterator[Problem]:
    """The windows of maintenance are long enough together; the rule shows the arithmetic."""
    # Every day of the week is there four times at least.
    times = WINDOW_DAYS // 7 * len(set(days))
    if times * hours < LEAST_WINDOW_HOURS:
        rule = (
            f"{times} windows of {hours} hours in {WINDOW_DAYS} days are {times * hours} hours, and GKE needs"
            f" {LEAST_WINDOW_HOURS}"
        )
        needed = -(-LEAST_WINDOW_HOURS // times) if times else LEAST_WINDOW_HOURS
        yield Problem(f"{path}.hours", hours, rule, f"Set {needed} hours, or name more days.")
