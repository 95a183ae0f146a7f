"""Rules about the networks beside the GPUs of a cluster's pools on Google Cloud."""

from collections.abc import Iterator

from infra.catalog.gcp import facts, gpu_networks, network
from infra.catalog.gcp.fabrics import making
from infra.errors import Problem
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout
from infra.stackspec.stack import StackSpec


def fast_pools(layout: ClusterLayout, cloud: GcpSpec) -> list[gpu_networks.FastPool]:
    """The pools with networks of their GPUs, in one zone each; others are reported elsewhere."""
    found = []
    for index, pool in enumerate(layout.pools):
        machine = facts.machine_types.get(pool.machine)
        if machine is None or machine.refused is not None:
            continue
        made = making(pool.machine, cloud.accelerator_networks or "managed") if pool.rdma else None
        if made is not None and len(pool.zones) == 1:
            (zone,) = pool.zones
            path = f"layout.pools[{index}]"
            one = gpu_networks.FastPool(
                path, pool.name, pool.machine, zone, pool.max_nodes, made == "classic"
            )
            found.append(one)
    return found


def shared_networks(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Problem]:
    """Networks beside GPUs are of one kind in a cluster, and have addresses for all nodes that share them."""
    pools = fast_pools(layout, cloud)
    wanted = cloud.accelerator_networks or "managed"
    yield from gpu_networks.mixing_problems("on.accelerator_networks", wanted, pools)
    classic = [pool for pool in pools if pool.classic]
    yield from gpu_networks.zone_problems(classic)
    yield from gpu_networks.first_zone_problems("on.first_rdma_zone", cloud.first_rdma_zone, classic)
    if cloud.first_rdma_zone is not None:
        yield from network.zone_problem("on.first_rdma_zone", spec.region, cloud.first_rdma_zone)
    yield from gpu_networks.room_problems("layout.network_cidr", layout.network_cidr, classic)
