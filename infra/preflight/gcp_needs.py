"""What a stack takes of the quotas of its project, from its spec alone."""

import math
from collections.abc import Iterator

from infra.catalog.demand import Demand
from infra.catalog.gcp import facts
from infra.catalog.gcp.deploying import cpu_key, gpu_key, vcpus
from infra.preflight.needs import Needs
from infra.stackspec import StackSpec
from infra.stackspec.clouds import GcpSpec
from infra.stackspec.layouts import MediumLayout, PoolSpec

# Flex-start takes the quotas of Spot (Managed Service for Apache Spark documentation, "Dynamic Workload
# Scheduler", read 2026-11-22). What is reserved was taken of the quota when it was reserved.
MARKETS = {
    "on_demand": "on_demand",
    "spot": "preemptible",
    "flex_start": "preemptible",
    "queued": "preemptible",
}
# They take Hyperdisk alone, which has quotas of its own (Compute Engine documentation, "Machine families
# resource and comparison guide", supported disk types).
_HYPERDISK = ("a3-ultragpu-", "a4-", "a4x-", "c4-", "c4a-", "c4d-", "n4-", "n4a-", "n4d-")
SYSTEM_DISK_GIB = 100
"""GKE's own size of a boot disk."""
HOMES_GIB = 1024
"""The smallest share of Filestore in the tiers that take a key of ours."""


def needs(spec: StackSpec) -> Needs:
    """The quotas that a stack on Google Cloud takes; of what has none of its own, or none known, nothing."""
    layout, cloud = spec.layout, spec.on
    if not isinstance(layout, MediumLayout) or not isinstance(cloud, GcpSpec):
        return Needs((), ())
    fixed = (*_fixed(spec, layout),)
    system = layout.system_pool
    zones = len(layout.zones)
    first = zones * math.ceil(system.min_nodes / zones)  # GKE begins with as many in each zone
    now = [*fixed, *_cpu_nodes("layout.system_pool", system.machine, first, SYSTEM_DISK_GIB)]
    most = [*fixed, *_cpu_nodes("layout.system_pool", system.machine, system.max_nodes, SYSTEM_DISK_GIB)]
    for pool in layout.pools:
        now += _pool(pool, max(pool.min_nodes, spec.validated.get(pool.name, 0)))
        most += _pool(pool, pool.max_nodes)
    return Needs(tuple(now), tuple(most))


def _fixed(spec: StackSpec, layout: MediumLayout) -> Iterator[Demand]:
    """What does not grow with the pools."""
    yield Demand("networks", 1, "network")
    yield Demand("in_use_addresses", 1, "Cloud NAT")
    if spec.data.homes:
        yield Demand("filestore_gib", HOMES_GIB, "data.homes")
    for pool in layout.pools:
        row = facts.gpu_networks.get(pool.machine)
        if row and pool.rdma:
            # The RDMA NICs share one network, with a subnetwork each.
            yield Demand("networks", row.networks + (row.rdma_subnetworks > 0), pool.name)


def _cpu_nodes(
    name: str, machine: str, nodes: int, disk_gib: int, market: str = "on_demand"
) -> Iterator[Demand]:
    key, each = cpu_key(machine) if market == "on_demand" else None, vcpus(machine)
    if not nodes:
        return
    if each and key:
        yield Demand(key, each * nodes, name)
    if each:
        yield Demand("cpus_all_regions", each * nodes, name)
    if not machine.startswith(_HYPERDISK):
        yield Demand("ssd_total_gb", disk_gib * nodes, name)


def _pool(pool: PoolSpec, nodes: int) -> Iterator[Demand]:
    """The nodes of a pool. vCPUs of machines with GPUs are not counted: no source names their quotas."""
    market = MARKETS.get(pool.purchase.kind)
    if not nodes or market is None:
        return
    machine = facts.machine_types.get(pool.machine)
    if machine is None:
        yield from _cpu_nodes(pool.name, pool.machine, nodes, pool.disk_gib, market)
        return
    key, gpus = gpu_key(machine.accelerator, market), machine.count * nodes
    if key:
        yield Demand(key, gpus, pool.name)
    yield Demand("gpus_all_regions", gpus, pool.name)
    if not pool.machine.startswith(_HYPERDISK):
        yield Demand("ssd_total_gb", pool.disk_gib * nodes, pool.name)
