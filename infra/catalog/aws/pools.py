"""Pools of GPU nodes: which combinations of type, zones, fabric, purchase and size EC2 and EKS can run."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from infra.catalog.aws import facts
from infra.catalog.aws.model import InstanceType
from infra.catalog.errors import UnknownFactError
from infra.errors import Problem

RESERVED_LABELS: Final = "trainstack.dev/"
"""Prefix of the labels that pools set themselves."""
PURCHASES: Final = ("on_demand", "spot", "reserved", "capacity_block")
PREPAID: Final = ("reserved", "capacity_block")
"""Purchases that launch into a reservation which exists."""
# The form of ids that EC2 gives to reservations and Capacity Blocks.
_DRA_FROM: Final = 35
"""Minor version of Kubernetes."""
_RESERVATION: Final = re.compile(r"cr-[0-9a-f]{8,17}")


def type_problems(path: str, name: str) -> Iterator[Problem]:
    """The type is a GPU type of EC2 that the catalog knows."""
    try:
        facts.instance_type(name)
    except UnknownFactError as error:
        yield Problem(path, name, "unknown GPU type", f"Near it are {', '.join(error.nearest)}.")


def efa_problems(path: str, machine: InstanceType) -> Iterator[Problem]:
    """A type that is to be used with EFA has it."""
    if not machine.efa:
        with_efa = sorted(
            name
            for name, other in facts.instance_types.items()
            if other.efa and other.accelerator == machine.accelerator
        )
        fix = f"Set {path} to false" + (f", or use {', '.join(with_efa)}." if with_efa else ".")
        yield Problem(path, True, f"{machine.name} has no EFA", fix)


def zone_count_problems(path: str, zones: int, *, efa: bool, prepaid: bool) -> Iterator[Problem]:
    """A pool is in one zone when its nodes talk over EFA, which stays in a subnet, or are reserved."""
    if zones < 1:
        yield Problem(path, zones, "a pool is in at least one zone", "Name a zone.")
    elif zones > 1 and efa:
        yield Problem(path, zones, "EFA needs exactly one zone", "Keep one zone.")
    elif zones > 1 and prepaid:
        yield Problem(path, zones, "a reservation is in one zone", "Keep the zone of the reservation.")


def purchase_problems(path: str, purchase: str, machine: InstanceType) -> Iterator[Problem]:
    """The way in which nodes of the type are paid exists."""
    if purchase not in PURCHASES:
        fix = f"Choose from {', '.join(PURCHASES)}."
        yield Problem(path, purchase, "unknown way to buy nodes", fix)
    if purchase == "capacity_block" and not machine.capacity_block:
        fix = "Buy the nodes in another way, or use another type."
        yield Problem(path, purchase, f"{machine.name} is not sold as a Capacity Block", fix)


def reservation_problems(path: str, reservation: str | None, purchase: str) -> Iterator[Problem]:
    """The id of a reservation or Capacity Block is there where one is used, and only there."""
    if purchase not in PREPAID:
        if reservation is not None:
            fix = "Remove it, or launch the nodes into the reservation."
            yield Problem(path, reservation, f"{purchase} nodes use no reservation", fix)
    elif reservation is None or not _RESERVATION.fullmatch(reservation):
        fix = "Name the reservation, like cr-0123456789abcdef0, or buy the nodes on demand."
        rule = f"{purchase} nodes launch into a reservation that exists"
        yield Problem(path, reservation, rule, fix)


def size_problems(least_path: str, least: int, most_path: str, most: int) -> Iterator[Problem]:
    """Fewest and most nodes of a managed node group; EKS wants a largest size of at least one."""
    for path, size in ((least_path, least), (most_path, most)):
        yield from facts.limits["node_group_nodes"].problems(path, size)
    if most == 0:
        yield Problem(most_path, most, "a node group can grow to at least one node", "Raise it.")
    if least > most:
        yield Problem(least_path, least, f"above the largest size, {most}", f"Lower it or raise {most_path}.")


def disk_problems(path: str, gib: int) -> Iterator[Problem]:
    """The root disk of a node, in GiB."""
    yield from facts.limits["root_volume_gib"].problems(path, gib)


def label_problems(path: str, labels: Mapping[str, str]) -> Iterator[Problem]:
    """Further labels of a pool's nodes."""
    for key in labels:
        if key.startswith(RESERVED_LABELS):
            yield Problem(path, key, f"the prefix {RESERVED_LABELS} is reserved for pools", "Rename it.")


def efa_driver_problems(path: str, driver: str, kubernetes_version: str) -> Iterator[Problem]:
    """EFA devices reach pods by the device plugin, or by Dynamic Resource Allocation on a recent Kubernetes.

    Source: README of chart aws-dranet 1.0.0, "Kubernetes 1.35+" (aws/eks-charts@c043cef46c7e
    stable/aws-dranet/README.md, read 2026-11-22).
    """
    if driver == "dra" and _minor(kubernetes_version) < _DRA_FROM:
        fix = f"Use device_plugin, or Kubernetes 1.{_DRA_FROM}."
        rule = f"the EFA driver for DRA needs Kubernetes 1.{_DRA_FROM} or later, not {kubernetes_version}"
        yield Problem(path, driver, rule, fix)


def _minor(version: str) -> int:
    return int(version.split(".")[1])
