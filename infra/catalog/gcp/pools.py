"""Pools of nodes: which combinations of type, zones, fabric, purchase, sharing and disks GKE can run."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from infra.catalog.errors import UnknownFactError
from infra.catalog.gcp import facts
from infra.catalog.gcp.gke import number
from infra.catalog.gcp.model import MachineType
from infra.errors import Problem

SYSTEM_DISK_GIB: Final = 50
"""Boot disk of a node for a cluster's own services."""
LOCAL_SSD_GIB: Final = 375
"""Size of one local SSD."""
FLEX_START_DAYS: Final = 7
"""After so many days a flex-start node ends. Source: GKE documentation, flex-start, read 2026-11-22."""
_CPU_POOL_VCPU: Final = 4
"""Below it, the cluster's own agents leave a node's jobs nothing."""
_MANAGED_FROM: Final = 34
"""Minor version of Kubernetes from which DRANET makes networks: 1.34.1-gke.1829001 (GKE documentation,
"Allocate network resources by using DRANET", read 2026-11-22)."""
_RESERVATION: Final = re.compile(
    r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/reservations/[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
)
_BLOCK: Final = re.compile(r"/reservationBlocks/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SLICES: Final = 7
"""Of the cores of a GPU that can be cut."""
_DWS: Final = ("flex_start", "queued")


def type_problems(path: str, name: str) -> Iterator[Problem]:
    """The type is one with built-in GPUs that the catalog knows."""
    try:
        facts.machine_type(name)
    except UnknownFactError as error:
        yield Problem(path, name, "unknown GPU type", f"Near it are {', '.join(error.nearest)}.")


def cpu_problems(path: str, name: str) -> Iterator[Problem]:
    """The type has no GPU, and processors and memory that the catalog knows, more than its agents take."""
    machine = facts.cpu_type(name)
    if machine is None or machine.vcpu < _CPU_POOL_VCPU:
        fix = f"Use one with {_CPU_POOL_VCPU} processors or more, such as n2-standard-16."
        yield Problem(path, name, "no CPU type for a pool of jobs", fix)


def cpu_purchase_problems(path: str, bought: str) -> Iterator[Problem]:
    """Nodes without GPUs are bought when they are needed."""
    if bought not in ("on_demand", "spot"):
        fix = "Buy them on_demand or spot."
        yield Problem(path, bought, "nodes without GPUs are neither reserved nor waited for", fix)


def system_type_problems(path: str, name: str) -> Iterator[Problem]:
    """The type is a CPU type for a cluster's own services that the catalog knows.

    An unknown type is refused, as an unknown GPU type is: a misspelling would fail only after the cluster
    has been made, and a further family is one row of `cpu_families.toml`.
    """
    if name not in facts.cpu_types:
        near = UnknownFactError("CPU type", name, facts.cpu_types).nearest
        yield Problem(path, name, "unknown CPU type", f"Near it are {', '.join(near)}.")


def offer_problems(
    path: str, machine: str, zones_path: str, zones: Sequence[str], region: str
) -> Iterator[Problem]:
    """The region offers the type, and so does each of the zones; their names are those of all projects."""
    offered = facts.offering_zones(machine, region) if region in facts.regions else None
    if offered is None:
        return
    if not offered:
        others = [name for name in sorted(facts.regions) if facts.offering_zones(machine, name)]
        fix = f"Offered in {', '.join(others)}." if others else "Use another type."
        yield Problem(path, machine, f"not offered in {region}", fix)
        return
    for index, zone in enumerate(zones):
        if zone in facts.region(region).zones and zone not in offered:
            fix = f"Offered in {', '.join(offered)}."
            yield Problem(f"{zones_path}[{index}]", zone, f"has no {machine}", fix, against=path)


def rdma_problems(path: str, machine: MachineType) -> Iterator[Problem]:
    """A type whose GPUs are to talk directly (RDMA, TCPXO, TCPX) has the NICs for it."""
    if machine.fabric is None:
        able = sorted(name for name, other in facts.machine_types.items() if other.fabric)
        same = [name for name in able if facts.machine_types[name].accelerator == machine.accelerator]
        fix = (
            f"Set {path} to false, with `compact: true` under on.pools if nodes shall stand close together, "
            f"or use {', '.join(same or able)}."
        )
        yield Problem(path, True, f"{machine.name} has no network of its own for GPUs", fix)


def network_problems(
    path: str, networks: str, machine: MachineType, version_path: str, version: str
) -> Iterator[Problem]:
    """Networks for GPUs are made by GKE (`managed`), where its version can, or by the stack (`classic`)."""
    wanted = facts.gpu_networks.get(machine.name)
    if wanted is None:
        return
    if networks == "classic" and not wanted.by_hand:
        rule = f"only GKE makes the networks of {machine.name}"
        yield Problem(path, networks, rule, "Write managed.")
    if networks == "managed" and wanted.by_gke and number(version) < _MANAGED_FROM:
        rule = f"GKE makes the networks of {machine.name} from Kubernetes 1.{_MANAGED_FROM} on, not {version}"
        yield Problem(path, networks, rule, "Write classic, or use a later version.", against=version_path)


def network_count_problems(path: str, machine: str, count: int) -> Iterator[Problem]:
    """As many networks are given to a pool as the NICs of its type need, or none."""
    wanted = facts.gpu_networks.get(machine)
    needed = wanted.total if wanted else 0
    if count not in (0, needed):
        rule = (
            f"{machine} takes {needed} networks besides the cluster's own"
            if needed
            else f"{machine} takes none"
        )
        fix = f"Give {needed}, or none and do without a direct way between GPUs." if needed else "Give none."
        yield Problem(path, count, rule, fix)


def reservation_problems(path: str, kind: str, reservation: str | None) -> Iterator[Problem]:
    """The full name of a reservation; without its project GKE does not find one with blocks.

    Source: GoogleCloudPlatform/cluster-toolkit#5043 and modules/compute/gke-node-pool (reservation_affinity).
    """
    form = "projects/<project>/reservations/<name>"
    text = reservation or ""
    found = _RESERVATION.match(text)
    rest = text[found.end() :] if found else text
    if found is None or (rest and not (kind == "reserved" and _BLOCK.fullmatch(rest))):
        also = " (or one of its blocks: .../reservationBlocks/<block>)" if kind == "reserved" else ""
        rule = f"must be the full name of a reservation{also}"
        yield Problem(path, reservation, rule, f"Write it like {form}.")


def dws_problems(path: str, kind: str, least_path: str, least: int) -> Iterator[Problem]:
    """Queued nodes come for a job and go with it, so none is there before."""
    if kind == "queued" and least > 0:
        rule = "queued nodes come for a job, so the smallest size is 0"
        yield Problem(least_path, least, rule, "Write 0, or buy them with flex_start.", against=path)


def compact_problems(path: str, kind_path: str, kind: str, zones_path: str, zones: int) -> Iterator[Problem]:
    """Nodes that are placed close together stand in one zone, and are not waited for.

    Source: GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool (placement_policy).
    """
    if kind in _DWS:
        fix = "Leave compact out, or buy the nodes in another way."
        yield Problem(path, True, f"{kind} takes no compact placement", fix, against=kind_path)
    if zones > 1:
        fix = "Keep one zone, or leave compact out."
        yield Problem(path, True, "a compact placement is in one zone", fix, against=zones_path)


def sharing_problems(path: str, purpose: str) -> Iterator[Problem]:
    """GPUs are shared where people try things; a training run on a part of a GPU measures its neighbours."""
    if purpose != "interactive":
        fix = "Leave it out, or make the pool interactive."
        yield Problem(path, purpose, "GPUs are shared in interactive pools alone", fix)


def partition_problems(path: str, partition: str, machine: MachineType) -> Iterator[Problem]:
    """The GPU can be cut into partitions of that size."""
    sizes = facts.accelerators[machine.accelerator].mig
    title = facts.accelerators[machine.accelerator].title
    if not sizes:
        fix = "Share it by `time_sharing`, or use a type with A100, H100, H200 or B200."
        yield Problem(path, partition, f"{title} is not cut into partitions", fix)
    elif partition not in sizes:
        yield Problem(path, partition, f"no partition of {title}", f"It has {', '.join(sizes)}.")


def local_ssd_problems(path: str, count: int, machine: str) -> Iterator[Problem]:
    """The type has so many local SSDs, or takes as many as are wanted."""
    known = facts.machine_types.get(machine)
    if known is None:
        if count:
            rule = f"{machine} has none (of CPU types, those that end in -lssd have some)"
            yield Problem(path, count, rule, "Leave it out.")
    elif known.local_ssds is not None and count != known.local_ssds:
        rule = f"{machine} always has {known.local_ssds}"
        yield Problem(path, count, rule, "Leave it out, or write that number.")
    elif not known.local_ssds_choosable and known.local_ssds is None:
        rule = f"{machine} has a number of its own, which cannot be chosen"
        yield Problem(path, count, rule, "Leave it out.")


def gpus_of_node(machine: MachineType, *, clients: int = 1, partition: str | None = None) -> int:
    """What a node offers as `nvidia.com/gpu`: its GPUs, its partitions, or turns on its GPUs.

    A GPU has seven slices of cores and as many partitions as its memory holds (NVIDIA MIG user guide); the
    name of a partition, `3g.20gb`, says what it takes of both.
    """
    memory = facts.accelerators[machine.accelerator].memory_gib
    if partition is None or memory is None:
        return machine.count * clients
    slices, gib = re.findall(r"\d+", partition)[:2]
    return machine.count * min(_SLICES // int(slices), round(memory / int(gib)))


def size_problems(most_path: str, most: int) -> Iterator[Problem]:
    """Most nodes of a node pool."""
    yield from facts.limits["node_pool_nodes"].problems(most_path, most)


def idle_problems(path: str, minutes: int | None) -> Iterator[Problem]:
    """GKE's autoscaler takes idle nodes away by a profile, not after minutes that somebody sets.

    Source: GKE documentation, "About GKE cluster autoscaling", autoscaling profiles; minutes are only those
    of compute classes (`consolidationDelayMinutes`), and a pool is in none.
    """
    if minutes is not None:
        rule = "GKE decides how long a node may be idle, by the profile that takes nodes away soonest"
        yield Problem(path, minutes, rule, "Set it to null; a pool's min_nodes keeps nodes that nobody needs.")
