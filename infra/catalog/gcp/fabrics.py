"""The NICs beside the GPUs of a machine: which networks they need, and who makes these."""

from collections.abc import Iterator
from typing import Final, Literal

from infra.catalog.gcp import facts
from infra.catalog.gcp.gke import number
from infra.catalog.gcp.model import MachineType
from infra.errors import Problem

JUMBO: Final = 8896
"""The largest packet of a VPC network, in bytes (VPC documentation, "Maximum transmission unit")."""
Making = Literal["managed", "classic"]
_MANAGED_FROM: Final = 34
"""Minor version of Kubernetes from which DRANET makes networks: 1.34.1-gke.1829001 (GKE documentation,
"Allocate network resources by using DRANET", read 2026-11-22)."""
_RACK_NODES: Final = 18
"""Machines of 4 GPUs in a rack of NVL72."""


def making(machine: str, wanted: Making) -> Making | None:
    """Who makes the networks of a machine type; None where it needs none.

    GKE makes those that it can where `managed` is wanted. Those of TCPX and TCPXO are always classic, those
    of a type that no source lays out by hand always managed.
    """
    row = facts.gpu_networks.get(machine)
    if row is None:
        return None
    if not row.by_gke:
        return "classic"
    return wanted if row.by_hand else "managed"


def primary_mtu() -> int:
    """The largest packet, in bytes, of a cluster's network that every machine type can have.

    It does not depend on the types that a stack has now: nodes that run keep their packet size, so a network
    that changed with a new pool would drop what they send each other.
    """
    return min(row.mtu for row in facts.gpu_networks.values())


def rdma_problems(path: str, machine: MachineType) -> Iterator[Problem]:
    """A type whose GPUs are to talk directly (RDMA, TCPXO, TCPX) has the NICs for it."""
    if machine.fabric is None:
        able = sorted(name for name, other in facts.machine_types.items() if other.fabric)
        same = [name for name in able if facts.machine_types[name].accelerator == machine.accelerator]
        fix = (
            f"Set {path} to false, with `compact: true` if nodes shall stand close together, "
            f"or use {', '.join(same or able)}."
        )
        yield Problem(
            path,
            True,
            f"{machine.name} has no network of its own for GPUs",
            fix,
            code="machine-without-gpu-network",
        )


def making_problems(
    path: str, networks: Making, machine: str, version_path: str, version: str
) -> Iterator[Problem]:
    """Networks for GPUs are made by GKE (`managed`), where its version can, or by the stack (`classic`)."""
    wanted = facts.gpu_networks.get(machine)
    if wanted is None:
        return
    if networks == "classic" and not wanted.by_hand:
        rule = f"only GKE makes the networks of {machine}"
        yield Problem(path, networks, rule, "Write managed.", code="networks-only-managed")
    if networks == "managed" and wanted.by_gke and number(version) < _MANAGED_FROM:
        rule = f"GKE makes the networks of {machine} from Kubernetes 1.{_MANAGED_FROM} on, not {version}"
        yield Problem(
            path,
            networks,
            rule,
            "Write classic, or use a later version.",
            against=version_path,
            code="managed-networks-need-version",
        )


def attachment_problems(path: str, machine: str, count: int | None) -> Iterator[Problem]:
    """As many networks are given to a pool as the NICs of its type need; None: GKE makes them."""
    wanted = facts.gpu_networks.get(machine)
    if count is None:
        if wanted is not None and not wanted.by_gke:
            fix = f"Give it {wanted.total} of the stack's own."
            yield Problem(path, None, f"GKE makes no networks for {machine}", fix, code="networks-missing")
    elif wanted is None or not wanted.by_hand:
        rule = f"the stack makes no networks for {machine}"
        yield Problem(path, count, rule, "Give it none.", code="networks-not-supported")
    elif count != wanted.total:
        rule = f"{machine} takes {wanted.total} networks besides the cluster's own"
        yield Problem(path, count, rule, f"Give it {wanted.total}.", code="network-count-mismatch")


def classic_problems(path: str, machine: str) -> Iterator[Problem]:
    """The networks of a machine type are known, so that they can be made by hand."""
    known = sorted(name for name, row in facts.gpu_networks.items() if row.by_hand)
    if machine not in known:
        rule = "no source says which networks its NICs need"
        fix = f"Known are {', '.join(known)}; GKE itself makes those of A4X Max (managed)."
        yield Problem(path, machine, rule, fix, code="networks-unknown")


def rack(machine: MachineType, *, rdma: bool) -> str | None:
    """The topology of the workload policy that the stack makes for a pool; None: it makes none.

    `compact` takes none: GKE makes the policy of such a pool by itself.
    """
    return machine.topology if rdma else None


def rack_problems(path: str, most: int, machine: MachineType) -> Iterator[Problem]:
    """Machines with RDMA that a workload policy places together are of one rack."""
    if machine.topology and most > _RACK_NODES:
        rule = f"a policy of {machine.topology} GPUs places at most {_RACK_NODES} machines: one rack"
        fix = f"Set {_RACK_NODES}, and make another pool for another rack."
        yield Problem(path, most, rule, fix, code="rack-too-small")
