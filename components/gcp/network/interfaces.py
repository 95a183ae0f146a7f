"""The NICs beside GPUs in a pod: the Network object of each interface.

The cluster's own network is `eth0`. Source: GoogleCloudPlatform/cluster-toolkit@10470803, examples/
gke-a3-highgpu, gke-a3-megagpu, gke-a3-ultragpu, gke-a4 (names of networks, annotations of test jobs).
Names do not depend on the pool: pools share networks (`infra.catalog.gcp.gpu_networks`), so that a pod runs
on any of them.
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


def interfaces(machine: str, part: str = "") -> tuple[GpuInterface, ...]:
    """The interfaces of a machine whose networks this stack makes, in the order of its pool's networks.

    A3 High and A3 Mega: `vpc1` at `eth1` and so on. A3 Ultra and A4: `gvnic-1` at `eth1`, `rdma-0` at `eth2`
    and so on; `part` distinguishes their zones, as in `rdma-c-0`. Raises UserError for machines whose
    networks are not known.
    """
    if problems := list(classic_problems("machine", machine)):
        raise UserError(problems)
    needs = facts.gpu_networks[machine]
    plain = f"gvnic-{part}" if needs.rdma_subnetworks else "vpc"
    names = [(f"{plain}{number}", "NetDevice") for number in range(1, needs.networks + 1)]
    names += [(f"rdma-{part}{number}", "RDMA") for number in range(needs.rdma_subnetworks)]
    return tuple(GpuInterface(f"eth{place}", name, mode) for place, (name, mode) in enumerate(names, start=1))


def run_networks(machine: str, part: str = "") -> list[str]:
    """The Network objects that pods of a run name: the RDMA adapters where there are some."""
    own = interfaces(machine, part)
    return [one.network for one in own if one.device_mode == "RDMA"] or [one.network for one in own]
