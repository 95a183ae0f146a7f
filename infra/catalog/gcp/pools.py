"""Checks of node pools: type, zones, fabric, purchase, sharing and disks that GKE supports together."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from infra.catalog import pools
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import MachineType, Way
from infra.errors import Problem

SYSTEM_DISK_GIB: Final = 100
"""Boot disk of a node for a cluster's own services: GKE's own size."""
LOCAL_SSD_GIB: Final = 375
"""Size of one local SSD."""
FLEX_START_DAYS: Final = 7
"""Maximum lifetime of a flex-start node. Source: GKE documentation, flex-start, read 2026-11-22."""
_CPU_POOL_VCPU: Final = 4
"""With fewer, the cluster's own agents leave no processors for jobs."""
# A short name is resolved in the cluster's project and fails with blocks.
_RESERVATION: Final = re.compile(
    r"projects/(?P<project>[a-z][a-z0-9-]{4,28}[a-z0-9])/reservations/(?P<name>[a-z]([a-z0-9-]{0,61}[a-z0-9])?)"
    r"(/reservationBlocks/(?P<block>[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?))?"
)
KINDS: Final[tuple[Way, ...]] = get_args(Way)
"""Ways to buy nodes."""
_LAYERED: Final = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-")
NETWORK_LAYERS: Final = tuple(f"cloud.google.com/gce-topology-{one}" for one in ("block", "subblock", "host"))
"""Labels of nodes from the widest part of the network to the narrowest, which GKE sets on reserved, dense
capacity (`layers`). Sources: AI Hypercomputer documentation, schedule-gke-workloads-tas; guides of llm-d,
placement of multi-host replicas; read 2026-11-25. A3 High and A3 Mega: cluster-toolkit@10470803 examples/
gke-a3-highgpu and gke-a3-megagpu, kueue-configuration.yaml.tftpl."""
PREPAID: Final = ("reserved", "block")
"""Nodes on a reservation of their own."""
DYNAMIC: Final = ("flex_start", "queued")
"""Nodes of Dynamic Workload Scheduler: they start when capacity is available and end after seven days at
most."""
PREEMPTIBLE: Final = ("spot", *DYNAMIC)
"""Purchases that count against preemptible quotas (Managed Service for Apache Spark documentation, "Dynamic
Workload Scheduler", read 2026-11-22)."""


@dataclass(frozen=True)
class Reservation:
    """A reservation by its full name, `projects/<project>/reservations/<name>`, or one of its blocks."""

    project: str
    name: str
    block: str | None

    def __str__(self) -> str:
        block = f"/reservationBlocks/{self.block}" if self.block else ""
        return f"projects/{self.project}/reservations/{self.name}{block}"


def reservation(text: str) -> Reservation | None:
    """The reservation of a full name; None for other forms."""
    found = _RESERVATION.fullmatch(text)
    return Reservation(found["project"], found["name"], found["block"]) if found else None


def cpu_problems(path: str, name: str) -> Iterator[Problem]:
    """The type has no GPU, processors and memory in the catalog, and more than the agents of a node take."""
    machine = facts.cpu_type(name)
    if machine is None or machine.vcpu < _CPU_POOL_VCPU:
        fix = f"Use one with {_CPU_POOL_VCPU} processors or more, such as n2-standard-16."
        yield Problem(path, name, "no CPU type for a pool of jobs", fix, code="cpu-type-not-for-jobs")


def cpu_purchase_problems(path: str, bought: str) -> Iterator[Problem]:
    """Nodes without GPUs are bought on demand or spot."""
    if bought not in ("on_demand", "spot"):
        fix = "Buy them on_demand or spot."
        rule = "nodes without GPUs are neither reserved nor queued"
        yield Problem(path, bought, rule, fix, code="purchase-needs-gpus")


def purchase_problems(path: str, kind: Way, machine: str) -> Iterator[Problem]:
    """The machine type is sold in that way; what no source denies is accepted."""
    if machine in facts.sales and facts.sold(machine, kind) is False:
        fix = f"Buy it by {' or '.join(facts.ways(machine))}, or use another type."
        yield Problem(path, kind, f"{machine} is not sold in this way", fix, code="purchase-not-offered")


def refused_problems(path: str, machine: MachineType) -> Iterator[Problem]:
    """The stack installs what nodes of the type need."""
    if machine.refused is not None:
        fix = "Use a4-highgpu-8g or a3-ultragpu-8g, which have RDMA between nodes."
        yield Problem(path, machine.name, machine.refused, fix, code="machine-not-supported")


def gang_problems(path: str, kind: str, rdma_path: str, most: int) -> Iterator[Problem]:
    """Nodes on which runs of several nodes start are queued: all of them, or none.

    Nodes of plain flex-start come one by one and are billed while the others are missing. Source: GKE
    documentation, "About GPU, TPU, and H4D consumption with flex-start provisioning mode": without queued
    provisioning for workloads of one node.
    """
    if kind == "flex_start" and most > 1:
        rule = "flex-start nodes start one by one, and runs over RDMA need all of their nodes"
        yield Problem(path, kind, rule, "Write queued.", against=rdma_path, code="flex-start-not-for-gangs")


def offer_problems(
    path: str, machine: str, zones_path: str, zones: Sequence[str], region: str
) -> Iterator[Problem]:
    """The region offers the type, and so does each of the zones; zone names are the same in all projects."""
    offered = facts.offering_zones(machine, region) if region in facts.regions else None
    if offered is None:
        return
    if not offered:
        others = [name for name in sorted(facts.regions) if facts.offering_zones(machine, name)]
        fix = f"Offered in {', '.join(others)}." if others else "Use another type."
        yield Problem(path, machine, f"not offered in {region}", fix, code="machine-not-in-region")
        return
    for index, zone in enumerate(zones):
        if zone in facts.region(region).zones and zone not in offered:
            fix = f"Offered in {', '.join(offered)}."
            rule = f"has no {machine}"
            yield Problem(f"{zones_path}[{index}]", zone, rule, fix, against=path, code="machine-not-in-zone")


def reservation_problems(path: str, kind: str, named: str | None) -> Iterator[Problem]:
    """Prepaid nodes need the full name of their reservation; GKE needs the project to find one with blocks.

    Source: GoogleCloudPlatform/cluster-toolkit#5043 and modules/compute/gke-node-pool (reservation_affinity).
    """
    if kind not in PREPAID:
        if named is not None:
            fix = "Remove it, or start the nodes in the reservation."
            yield Problem(path, named, f"{kind} nodes use no reservation", fix, code="reservation-not-used")
    elif named is None or reservation(named) is None:
        fix = (
            "Write it like projects/<project>/reservations/<name>, with /reservationBlocks/<block> if meant."
        )
        rule = "must be the full name of a reservation"
        yield Problem(path, named, rule, fix, code="invalid-reservation-name")


def queued_problems(path: str, kind: str, least_path: str, least: int) -> Iterator[Problem]:
    """Queued nodes start and end with a job, so the pool has no minimum size."""
    if kind == "queued" and least > 0:
        rule = "queued nodes start with a job, so the minimum size is 0"
        fix = "Write 0, or buy them with flex_start."
        yield Problem(least_path, least, rule, fix, against=path, code="queued-minimum-not-zero")


def compact_problems(path: str, kind_path: str, kind: str, zones_path: str, zones: int) -> Iterator[Problem]:
    """Nodes of a compact placement policy are in one zone, and their placement is not fixed otherwise.

    Source: GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool (placement_policy).
    """
    fix = "Leave compact out."
    if kind in DYNAMIC:
        rule = f"{kind} does not support compact placement"
        yield Problem(path, True, rule, fix, against=kind_path, code="compact-with-dynamic-nodes")
    if kind in PREPAID:
        rule = "the placement of a reservation is fixed"
        yield Problem(path, True, rule, fix, against=kind_path, code="compact-with-reservation")
    if zones > 1:
        rule = "a compact placement is in one zone"
        fix = "Keep one zone, or leave compact out."
        yield Problem(path, True, rule, fix, against=zones_path, code="compact-needs-one-zone")


def rdma_compact_problems(path: str, rdma_path: str, machine: str) -> Iterator[Problem]:
    """Machines with a network for RDMA need no placement policy; with GPUDirect over TCP they may have one.

    Source: GoogleCloudPlatform/ai-infra-cluster-provisioning, test/pr/a3-mega
    (use_compact_placement_policy), read 2026-11-30.
    """
    found = facts.machine_types.get(machine)
    if found is not None and found.fabric in ("tcpx", "tcpxo"):
        return
    rule = "machines with an RDMA network are placed by their network"
    yield Problem(path, True, rule, "Leave compact out.", against=rdma_path, code="compact-with-rdma")


def partition_problems(path: str, partition: str, machine: MachineType) -> Iterator[Problem]:
    """The GPU supports partitions of that size."""
    gpu = facts.accelerators[machine.accelerator]
    able = [row.title for row in facts.accelerators.values() if row.mig]
    yield from pools.partition_problems(path, partition, gpu.title, gpu.mig, able)


def local_ssd_problems(path: str, count: int, machine: str) -> Iterator[Problem]:
    """The type has this number of local SSDs, or supports it."""
    known = facts.machine_types.get(machine)
    if known is None:
        if count:
            rule = f"{machine} has no local SSDs (among CPU types, only those that end in -lssd)"
            yield Problem(path, count, rule, "Leave it out.", code="machine-without-local-ssds")
    elif count not in known.local_ssd_counts:
        rule = f"{machine} has {' or '.join(map(str, known.local_ssd_counts))} local SSDs"
        yield Problem(path, count, rule, "Leave it out, or write such a number.", code="local-ssd-count")


def stays_idle(machine: str, least: int) -> bool:
    """Return whether idle GPU nodes of a pool stay: the autoscaler removes nodes above the minimum."""
    return least > 0 and facts.cpu_type(machine) is None


def gpus_of_node(machine: MachineType, *, clients: int | None = None, partition: str | None = None) -> int:
    """`nvidia.com/gpu` of a node: its GPUs, partitions, or clients that share GPUs."""
    if partition is not None:
        return machine.count * facts.accelerators[machine.accelerator].mig[partition]
    return machine.count * (clients or 1)


def share_problems(path: str, shares: int, machine: MachineType, most: int) -> Iterator[Problem]:
    """A node has no more shares of GPUs than its pods (`most`), of which each may take one."""
    if shares > most:
        rule = f"{shares} shares on a node of {machine.name}, of at most {most} pods"
        fix = f"Use at most {most // machine.count} per GPU, or raise on.pods_per_node (at most 256)."
        yield Problem(path, shares, rule, fix, against="on.pods_per_node", code="more-shares-than-pods")


def layers(machine: str, bought: str) -> tuple[str, ...]:
    """The labels of network layers that nodes have; empty without a source."""
    return NETWORK_LAYERS if machine.startswith(_LAYERED) and bought in PREPAID else ()


def size_problems(least_path: str, least: int, most_path: str, most: int) -> Iterator[Problem]:
    """Minimum and maximum size of a node pool."""
    yield from facts.limits["node_pool_least"].problems(least_path, least)
    yield from facts.limits["node_pool_nodes"].problems(most_path, most)
