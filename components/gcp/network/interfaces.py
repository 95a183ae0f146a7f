"""The NICs beside GPUs in a pod: the Network object of each interface.

The cluster's own network is `eth0`. Source: GoogleCloudPlatform/cluster-toolkit@10470803, examples/
gke-a3-highgpu, gke-a3-megagpu, gke-a3-ultragpu, gke-a4 (names of networks, annotations of test jobs). Objects
are named after their pool: each pool has networks of its own, and a cluster has each name once.
"""

from dataclasses import dataclass

from infra.catalog.gcp import facts
from infra.catalog.gcp.fabrics import classic_problems
from infra.errors import UserError


@dataclass(frozen=True)
class GpuInterface:
    """One NIC beside the GPUs of a node."""

    name: str
    """In a pod, such as `eth1`."""
    network: str
    """The Kubernetes object `Network` that a pod names."""
    device_mode: str
    """`NetDevice`, or `RDMA`: as GKENetworkParamSet calls it."""


def interfaces(pool: str, machine: str) -> tuple[GpuInterface, ...]:
    """The interfaces of a pool whose networks this stack makes, in the order of the pool's networks.

    A3 High and A3 Mega: `<pool>-vpc1` at `eth1` and so on. A3 Ultra and A4: `<pool>-gvnic-1` at `eth1`,
    `<pool>-rdma-0` at `eth2` and so on. Raises UserError for machines whose networks are not known.
    """
    if problems := list(classic_problems("machine", machine)):
        raise UserError(problems)
    needs = facts.gpu_networks[machine]
    plain = "gvnic-" if needs.rdma_subnetworks else "vpc"
    parts = [(f"{plain}{number}", "NetDevice") for number in range(1, needs.networks + 1)]
    parts += [(f"rdma-{number}", "RDMA") for number in range(needs.rdma_subnetworks)]
    return tuple(
        GpuInterface(f"eth{place}", f"{pool}-{part}", mode)
        for place, (part, mode) in enumerate(parts, start=1)
    )
