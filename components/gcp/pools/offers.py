"""The resources of a node on GKE for jobs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from components.kubernetes.offers import FabricOffer, NodeOffer
from infra.catalog.gcp import facts
from infra.catalog.gcp.model import MachineType
from infra.catalog.gcp.pools import LOCAL_SSD_GIB, gpus_of_node
from infra.launchers.fabrics import PodNeeds
from infra.launchers.gcp import gke
from smoke_training.fabric import Fabric

# GKE reserves CPU and memory of a node by falling shares, and evicts pods for the last 100 MiB. Source: GKE
# documentation, "Plan GKE Standard node sizes" (docs.cloud.google.com/kubernetes-engine/docs/concepts/
# plan-node-sizes), as cloudpilot-ai/karpenter-provider-gcp pkg/utils has its rules (2025), and articles that
# quote it on 2026-07-20: (up to so many cores, share), (up to so many GiB, share).
_CPU = ((1, 0.06), (2, 0.01), (4, 0.005), (math.inf, 0.0025))
_MEMORY = ((4, 0.25), (8, 0.20), (16, 0.10), (128, 0.06), (math.inf, 0.02))
_EVICTION_MIB = 100
# More pods than GKE's default need 0.4 of a core more (the same page).
_DEFAULT_PODS, _MANY_PODS_CPU = 110, 0.4
# Of the disk for pods: a tenth before pods are evicted, and the system's part; by local SSDs,
# or of the boot disk (the same page).
_EVICTION_SHARE = 0.10
_SSD_SYSTEM_GIB = (50, 75, 100)
_BOOT_SHARE, _BOOT_SHARE_MORE, _BOOT_MORE_GIB, _BOOT_MOST_GIB = 0.50, 0.35, 6, 100
# The agents on every node, GKE's own and ours: Cilium, DNS, CSI, logs, metrics, DCGM, device plugin.
_AGENTS_CPU, _AGENTS_MEMORY_MIB = 1.0, 3072
# The kernel's part of a machine's nominal memory: 64 bytes a page of 4 KiB and some.
# With it, and the disk's other partitions, the page's own example (4 cores, 16 GiB, a disk of 100 GiB) comes
# out: 3920m, 13498416Ki and 47060071478 bytes are allocatable.
_KERNEL_SHARE, _KERNEL_GIB = 1 / 64, 0.25
_OTHER_PARTITIONS_GIB = 6

RDMA_CLASS = "mrdma.google.com"
"""Device class of RDMA adapters in DRANET."""
RDMA_RESOURCE = "networking.gke.io/mrdma"
"""Their resource in quotas."""
QUEUED_CLASS = "queued-provisioning.gke.io"
"""Class of ProvisioningRequests of Dynamic Workload Scheduler."""


def node_offer(
    machine: MachineType,
    *,
    pods_per_node: int,
    disk_gib: int,
    rdma: bool,
    networks: Sequence[str] = (),
    clients: int | None = None,
    partition: str | None = None,
    local_ssds: int | None = None,
) -> NodeOffer:
    """Resources of one node for jobs.

    `networks`: with `rdma`, the names in the cluster of the networks that pods use, in the order of their
    interfaces; empty where pods claim the adapters (DRANET). `clients` take turns on a GPU, or it is cut into
    parts of the size `partition`. A pod's daemon, where its network needs one, is
    subtracted before. Untested on hardware.
    """
    kind = Fabric(machine.fabric) if rdma and machine.fabric else None
    needs = _needs(kind, networks)
    beside = needs.get("sidecar")
    offer: NodeOffer = {
        "cpu": cores_for_jobs(machine.vcpu, pods_per_node) - (beside["cpu"] if beside else 0),
        "memory_gib": memory_for_jobs_gib(machine.memory_gib) - (beside["memory_gib"] if beside else 0),
        "gpus": gpus_of_node(machine, clients=clients, partition=partition),
        "ephemeral_gib": disk_for_jobs_gib(local_ssds or machine.local_ssds or 0, disk_gib),
        "pod": needs,
    }
    if kind is not None:
        offer["fabric"] = _fabric(kind, machine, networks)
    if clients is not None or partition is not None:
        offer["shared"] = True
    if clients is not None:
        # GKE documentation, "Share GPUs with multiple workloads using GPU time-sharing"; the limit is in
        # GoogleCloudPlatform/container-engine-accelerators pkg/gpu/nvidia/gpusharing.
        offer["gpus_per_pod"] = 1
    return offer


def cpu_offer(vcpu: int, memory_gib: float, *, pods_per_node: int, disk_gib: int) -> NodeOffer:
    """Resources of one node without GPUs for jobs."""
    return {
        "cpu": cores_for_jobs(vcpu, pods_per_node),
        "memory_gib": memory_for_jobs_gib(memory_gib),
        "gpus": 0,
        "ephemeral_gib": disk_for_jobs_gib(0, disk_gib),
    }


def cores_for_jobs(vcpu: int, pods_per_node: int) -> int:
    """Whole cores per node for jobs."""
    many = _MANY_PODS_CPU if pods_per_node > _DEFAULT_PODS else 0
    return math.floor(vcpu - _reserved(vcpu, _CPU) - many - _AGENTS_CPU)


def memory_for_jobs_gib(memory_gib: float) -> int:
    """Whole GiB per node for jobs."""
    seen = memory_gib * (1 - _KERNEL_SHARE) - _KERNEL_GIB
    taken = _reserved(memory_gib, _MEMORY) + (_EVICTION_MIB + _AGENTS_MEMORY_MIB) / 1024
    return math.floor(seen - taken)


def disk_for_jobs_gib(local_ssds: int, boot_disk_gib: int) -> int:
    """Whole GiB that pods of a node may use: of its local SSDs, or else of its boot disk."""
    if local_ssds:
        size = float(local_ssds * LOCAL_SSD_GIB)
        system = float(_SSD_SYSTEM_GIB[min(local_ssds, len(_SSD_SYSTEM_GIB)) - 1])
    else:
        whole = float(boot_disk_gib)
        size = whole - _OTHER_PARTITIONS_GIB
        system = min(whole * _BOOT_SHARE, whole * _BOOT_SHARE_MORE + _BOOT_MORE_GIB, _BOOT_MOST_GIB)
    return math.floor(size * (1 - _EVICTION_SHARE) - system)


def link_rates(machine: MachineType, *, rdma: bool) -> dict[str, float | None]:
    """The declared rates of a node's training traffic, Gb/s; None where the catalog has none.

    The keys are those of a smoke plan.
    """
    if rdma and machine.nics and machine.nic_gbps:
        return {
            "network_gbit_s": float(machine.nics * machine.nic_gbps),
            "rail_gbit_s": float(machine.nic_gbps),
        }
    plain = machine.network_gbps if machine.fabric is None else None  # else most of it is the fabric's
    return {"network_gbit_s": float(plain) if plain else None}


def peak_tflops(machine: MachineType) -> dict[str, Any] | None:
    """The peak rate of one accelerator, as a smoke plan states it; None without a source."""
    known = facts.accelerators[machine.accelerator]
    if known.dense_bf16_tflops is None:
        return None
    return {"value": known.dense_bf16_tflops, "dtype": "bfloat16", "source": f"{known.source} ({known.date})"}


def _reserved(amount: float, shares_up_to: Sequence[tuple[float, float]]) -> float:
    taken, done = 0.0, 0.0
    for limit, share in shares_up_to:
        taken += max(0.0, min(amount, limit) - done) * share
        done = limit
    return taken


def _needs(kind: Fabric | None, networks: Sequence[str]) -> PodNeeds:
    if kind is Fabric.TCPX:
        return gke.tcpx(networks)
    if kind is Fabric.TCPXO:
        return gke.tcpxo(networks)
    if kind is Fabric.RDMA:
        return gke.gib(networks)
    return gke.driver_only()


def _fabric(kind: Fabric, machine: MachineType, networks: Sequence[str]) -> FabricOffer:
    if networks:
        # Each network is a resource of its own, one per node: it belongs to the GPUs.
        requests: Mapping[str, str] = gke.network_requests(networks)
        return {"kind": kind, "count": len(networks), "pod_resources": requests}
    count = machine.nics or 0
    return {
        "kind": kind,
        "resource": RDMA_RESOURCE,
        "count": count,
        "pod_resources": {},
        "device_class": RDMA_CLASS,
    }
