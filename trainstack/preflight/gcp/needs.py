"""The quotas that a stack on Google Cloud needs, from its spec alone."""

import math
from collections.abc import Iterator

from infra.catalog.demand import Demand
from infra.catalog.gcp import facts, gpu_networks, quotas
from infra.catalog.gcp.pools import SYSTEM_DISK_GIB
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.rules.gcp.gpu_networks import fast_pools
from infra.stackspec.several.derived import of_stack
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.aws.needs import Needs


def needs(spec: StackSpec) -> Needs:
    """The needs by quota; resources without a known quota are left out."""
    spec = of_stack(spec)
    layout, cloud = spec.layout, spec.on
    if isinstance(layout, SlurmLayout) and isinstance(cloud, GcpSpec):
        return _of_slurm(spec, layout, cloud)
    if not isinstance(layout, ClusterLayout) or not isinstance(cloud, GcpSpec):
        return Needs((), ())
    fixed = (*_fixed(spec, layout, cloud),)
    system = layout.system_pool
    zones = len(layout.zones)
    first = zones * math.ceil(system.min_nodes / zones)  # GKE begins with the same number in each zone
    now = [*fixed, *_system(layout, first)]
    most = [*fixed, *_system(layout, system.max_nodes)]
    for pool in layout.pools:
        now += _pool(pool, max(pool.min_nodes, spec.validated.get(pool.name, 0)))
        most += _pool(pool, pool.max_nodes)
    return Needs(tuple(now), tuple(most))


def _of_slurm(spec: StackSpec, layout: SlurmLayout, cloud: GcpSpec) -> Needs:
    """Those of the machines in the project; the controller is the service's."""
    login = layout.login
    fixed = [
        *_network(spec, cloud),
        *_nodes("layout.login", login.machine, "on_demand", 1, login.disk_gib),
    ]
    now, most = [*fixed], [*fixed]
    for pool in layout.pools:
        now += _pool(pool, max(pool.min_nodes, spec.validated.get(pool.name, 0)))
        most += _pool(pool, pool.max_nodes)
    return Needs(tuple(now), tuple(most))


def _network(spec: StackSpec, cloud: GcpSpec) -> Iterator[Demand]:
    yield Demand("networks", 1, "network")
    yield Demand("in_use_addresses", 1, "Cloud NAT")
    if spec.data.homes:
        yield Demand("filestore_gib", cloud.homes_size_gib, "data.homes")


def _fixed(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec) -> Iterator[Demand]:
    yield from _network(spec, cloud)
    pools = fast_pools(layout, cloud)
    for pool in pools:
        if not pool.classic:
            # The RDMA NICs share one network, with a subnetwork each.
            row = facts.gpu_networks[pool.machine]
            yield Demand("networks", row.networks + (row.rdma_subnetworks > 0), pool.name)
    for names, count in gpu_networks.networks_needed([pool for pool in pools if pool.classic]):
        yield Demand("networks", count, ", ".join(names))


def _nodes(name: str, machine: str, bought: str, nodes: int, disk_gib: int) -> Iterator[Demand]:
    yield from quotas.demands(name, machine, bought, nodes)
    # Hyperdisk has quotas of its own.
    if nodes and bought not in quotas.RESERVED and facts.boot_disk(machine) != "hyperdisk-balanced":
        yield Demand("ssd_total_gb", disk_gib * nodes, name)


def _system(layout: ClusterLayout, nodes: int) -> Iterator[Demand]:
    machine = layout.system_pool.machine
    return _nodes("layout.system_pool", machine, "on_demand", nodes, SYSTEM_DISK_GIB)


def _pool(pool: PoolSpec, nodes: int) -> Iterator[Demand]:
    return _nodes(pool.name, pool.machine, pool.purchase.kind, nodes, pool.disk_gib)
