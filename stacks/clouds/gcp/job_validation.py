"""A machine type of custom jobs as the validation sees it."""

from typing import Any

from components.gcp.pools.offers import cpu_offer, link_rates, node_offer, peak_tflops
from infra.catalog.gcp import facts
from infra.stackspec.layouts import JobMachineSpec
from stacks.parts import Pool

# What a job may use of a machine is what a node of GKE with the fewest pods offers: less than it has.
_PODS_PER_NODE, _DISK_GIB = 8, 200


def as_pool(machine: JobMachineSpec, usd_per_hour: float | None) -> Pool:
    """The machine type as a pool of it. Vertex AI knows no fabric between machines that it would tell of."""
    processors, known = facts.cpu_type(machine.machine), dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(
            processors.vcpu, processors.memory_gib, pods_per_node=_PODS_PER_NODE, disk_gib=_DISK_GIB
        )
    else:
        hardware = facts.machine_type(machine.machine)
        offer = node_offer(
            hardware, pods_per_node=_PODS_PER_NODE, disk_gib=_DISK_GIB, rdma=False, networks=()
        )
        known = {"peak_tflops": peak_tflops(hardware), **link_rates(hardware, rdma=False)}
    return Pool(
        machine=machine.machine,
        max_nodes=machine.max_nodes,
        labels={},
        offer=offer,
        usd_per_hour=usd_per_hour,
        next_usd_per_hour=usd_per_hour,
        preference=0,
        own_queue=False,
        facts=known,
    )
