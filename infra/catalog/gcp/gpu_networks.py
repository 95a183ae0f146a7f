"""Sets of networks beside GPUs that a stack makes: shared by pools, and apart from each other.

Machines with TCPX and TCPXO share ordinary networks in a region; A3 High uses the first four of them. A
network of RDMA is in one zone, so these machines have a set for each zone. A cluster has no two networks of
pods with overlapping ranges, and for a network of devices that is the range of its subnetwork (GKE
documentation, "Set up multi-network support for Pods", read 2026-11-28; kubernetes/cloud-provider-gcp@
4e245312 pkg/controller/gkenetworkparamset, `extractRelevantCidrs`).
"""

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from infra.catalog.gcp import facts
from infra.catalog.gcp.network import SERVICES_BITS
from infra.errors import Problem

PLAIN: Final = "gpus"
"""The set of ordinary networks, for TCPX and TCPXO."""
RDMA_SLOTS: Final = 3
"""Zones with RDMA that have ranges."""
PLAIN_BITS: Final = SERVICES_BITS + 1
"""Range of a NIC in the set of ordinary networks: a prefix that is this many bits longer than the stack's."""
RDMA_BITS: Final = SERVICES_BITS + 5
"""The same for an adapter of RDMA in a zone."""
# A subnetwork's first two and last two addresses are Google's own (VPC documentation, "Unusable addresses in
# IPv4 subnet ranges").
UNUSABLE: Final = 4
_MIXED_RULE = (
    "pods claim the NICs of {managed} (DRANET) and name networks for those of {classic}; one cluster cannot "
    "have both: two drivers would manage the same NICs (GKE documentation, managed DRANET)"
)


@dataclass(frozen=True)
class FastPool:
    """A pool with networks of its GPUs."""

    path: str
    name: str
    machine: str
    zone: str
    most: int
    """Most nodes."""
    classic: bool
    """This stack makes the networks, instead of GKE."""


def set_of(machine: str, zone: str) -> str:
    """The set of networks that machines of a type in a zone use."""
    return f"rdma-{_end(zone)}" if facts.gpu_networks[machine].rdma_subnetworks else PLAIN


def slot(zone: str) -> int:
    """The ranges of a zone's RDMA set, by the letter of the zone: they stay when pools change."""
    return (ord(zone[-1]) - ord("a")) % RDMA_SLOTS


def first_zone(pools: Sequence[FastPool], wanted: str | None) -> str | None:
    """The zone whose networks of RDMA have names without its letter, as in Google's examples; None: none.

    It is `wanted`, or the only one: it must not depend on zones that come and go, because an object of a
    network cannot be renamed under the jobs that use it.
    """
    return wanted or min(_rdma_zones(pools), default=None)


def object_part(zone: str, first: str | None) -> str:
    """The part of the names of Network objects that distinguishes zones with RDMA."""
    return "" if zone == first else f"{_end(zone)}-"


def first_zone_problems(path: str, wanted: str | None, pools: Sequence[FastPool]) -> Iterator[Problem]:
    """With RDMA networks of the stack in several zones, the spec says whose names have no letter."""
    zones = _rdma_zones(pools)
    if wanted is None and len(zones) > 1:
        rule = (
            f"the objects of RDMA networks have the letter of their zone, except in one of {', '.join(zones)}"
        )
        fix = f"Write the zone that was deployed first; in a new stack {zones[0]}."
        yield Problem(path, None, rule, fix, code="first-rdma-zone-missing")


def networks_needed(pools: Sequence[FastPool]) -> Iterator[tuple[list[str], int]]:
    """The pools of each set, and the VPC networks that they share."""
    for members in _sets(pools).values():
        rows = [facts.gpu_networks[pool.machine] for pool in members]
        # The RDMA NICs share one network, with a subnetwork each.
        most = max(row.networks + (row.rdma_subnetworks > 0) for row in rows)
        yield [pool.name for pool in members], most


def room_problems(path: str, cidr: str, pools: Sequence[FastPool]) -> Iterator[Problem]:
    """The nodes of the pools of a set have addresses in its ranges.

    A `cidr` that is not a network is reported by `network.range_problems`.
    """
    try:
        whole = ipaddress.IPv4Network(cidr).num_addresses
    except ValueError:
        return
    for name, members in _sets(pools).items():
        room = (whole >> (PLAIN_BITS if name == PLAIN else RDMA_BITS)) - UNUSABLE
        most = sum(pool.most for pool in members)
        if most > room:
            names = " and ".join(pool.name for pool in members)
            rule = f"the networks of {names} have addresses for {room} nodes, and max_nodes add up to {most}"
            fix = "Use a larger range or fewer nodes."
            if all(facts.gpu_networks[pool.machine].by_gke for pool in members):
                fix = "Use a larger range or fewer nodes, or set on.accelerator_networks to managed."
            yield Problem(path, cidr, rule, fix, against=members[0].path, code="gpu-networks-too-small")


def zone_problems(pools: Sequence[FastPool]) -> Iterator[Problem]:
    """Zones with RDMA networks of the stack have ranges of their own."""
    taken: dict[int, FastPool] = {}
    for pool in pools:
        if not facts.gpu_networks[pool.machine].rdma_subnetworks:
            continue
        other = taken.setdefault(slot(pool.zone), pool)
        if other.zone != pool.zone:
            rule = f"RDMA networks in {pool.zone} would have the ranges of those in {other.zone}"
            fix = "Set on.accelerator_networks to managed, or use another zone."
            code = "rdma-zones-share-ranges"
            yield Problem(
                f"{pool.path}.zones", [pool.zone], rule, fix, against=f"{other.path}.zones", code=code
            )


def mixing_problems(path: str, wanted: str, pools: Sequence[FastPool]) -> Iterator[Problem]:
    """All pools of a cluster get the NICs of their GPUs in the same way."""
    classic = [pool for pool in pools if pool.classic]
    managed = [pool for pool in pools if not pool.classic]
    if classic and managed:
        fix = "Set it to classic, so that the stack makes the networks of all of them."
        rule = _MIXED_RULE.format(managed=managed[0].name, classic=classic[0].name)
        yield Problem(path, wanted, rule, fix, against=classic[0].path, code="networks-mixed")


def _sets(pools: Sequence[FastPool]) -> dict[str, list[FastPool]]:
    found: dict[str, list[FastPool]] = {}
    for pool in pools:
        found.setdefault(set_of(pool.machine, pool.zone), []).append(pool)
    return found


def _rdma_zones(pools: Sequence[FastPool]) -> list[str]:
    """Zones with RDMA networks of the stack."""
    rdma = {pool.zone for pool in pools if pool.classic and facts.gpu_networks[pool.machine].rdma_subnetworks}
    return sorted(rdma)


def _end(zone: str) -> str:
    return zone.rpartition("-")[2]
