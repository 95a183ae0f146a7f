"""Networks of the NICs beside the GPUs of a machine, and who creates them."""

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
"""Minor version of Kubernetes from which DRANET creates networks: 1.34.1-gke.1829001 (GKE documentation,
"Allocate network resources by using DRANET", read 2026-11-22)."""


def making(machine: str, wanted: Making) -> Making | None:
    """`managed`: GKE creates the networks of a machine type; `classic`: the stack; None: it needs none.

    TCPX and TCPXO are always classic; types without a documented manual layout are always managed.
    """
    row = facts.gpu_networks.get(machine)
    if row is None:
        return None
    if not row.by_gke:
        return "classic"
    return wanted if row.by_hand else "managed"


def primary_mtu() -> int:
    """The largest packet, in bytes, of a cluster's network that every machine type supports.

    It does not depend on the current types of a stack: running nodes keep their packet size, so a network
    that changed with a new pool would drop their packets.
    """
    return min(row.mtu for row in facts.gpu_networks.values())


def rdma_problems(path: str, machine: MachineType) -> Iterator[Problem]:
    """A type with RDMA, TCPXO or TCPX has the NICs for it."""
    if machine.fabric is None:
        able = sorted(name for name, other in facts.machine_types.items() if other.fabric)
        same = [name for name in able if facts.machine_types[name].accelerator == machine.accelerator]
        fix = (
            f"Set {path} to false, with `compact: true` for close placement, "
            f"or use {', '.join(same or able)}."
        )
        rule = f"{machine.name} has no separate network for GPUs"
        yield Problem(path, True, rule, fix, code="machine-without-gpu-network")


def making_problems(
    path: str, networks: Making, machine: str, version_path: str, version: str
) -> Iterator[Problem]:
    """GKE creates networks for GPUs (`managed`, in versions that support it), or the stack (`classic`)."""
    wanted = facts.gpu_networks.get(machine)
    if wanted is None:
        return
    if networks == "classic" and not wanted.by_hand:
        rule = f"only GKE can create the networks of {machine}"
        yield Problem(path, networks, rule, "Write managed.", code="networks-only-managed")
    if networks == "managed" and wanted.by_gke and number(version) < _MANAGED_FROM:
        rule = f"GKE creates the networks of {machine} from Kubernetes 1.{_MANAGED_FROM} on, not {version}"
        fix = "Write classic, or use a later version."
        yield Problem(path, networks, rule, fix, against=version_path, code="managed-networks-need-version")


def attachment_problems(path: str, machine: str, count: int | None) -> Iterator[Problem]:
    """A pool has as many networks as the NICs of its type need; None: GKE creates them."""
    wanted = facts.gpu_networks.get(machine)
    if count is None:
        if wanted is not None and not wanted.by_gke:
            fix = f"Attach {wanted.total} networks of the stack."
            yield Problem(path, None, f"GKE creates no networks for {machine}", fix, code="networks-missing")
    elif wanted is None or not wanted.by_hand:
        rule = f"the stack creates no networks for {machine}"
        yield Problem(path, count, rule, "Attach none.", code="networks-not-supported")
    elif count != wanted.total:
        rule = f"{machine} takes {wanted.total} networks besides the cluster's own"
        yield Problem(path, count, rule, f"Attach {wanted.total}.", code="network-count-mismatch")


def classic_problems(path: str, machine: str) -> Iterator[Problem]:
    """The networks of a machine type are documented, so that the stack can create them."""
    known = sorted(name for name, row in facts.gpu_networks.items() if row.by_hand)
    if machine not in known:
        rule = "the networks of its NICs are not documented"
        yield Problem(path, machine, rule, f"Known are {', '.join(known)}.", code="networks-unknown")
