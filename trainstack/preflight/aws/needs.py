"""The quotas that a stack on AWS needs, from its spec alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.catalog.aws import facts
from infra.catalog.aws.quotas import vcpu_key
from infra.catalog.demand import Demand
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.aws.slinky import SYSTEM_NODES
from infra.stackspec.layouts import ClusterLayout, PoolSpec, SmallLayout
from infra.stackspec.several.derived import of_stack
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.aws import job_needs

_MARKETS = {"spot": "spot", "on_demand": "on_demand"}
_GIB_PER_TIB = 1024


@dataclass(frozen=True)
class Needs:
    """The needs of a deployment with its validation, and of the stack at its largest."""

    now: tuple[Demand, ...]
    most: tuple[Demand, ...]


def needs(spec: StackSpec) -> Needs:
    """The needs by quota; resources without a known quota are left out."""
    spec = of_stack(spec)
    layout, cloud = spec.layout, spec.on
    if isinstance(layout, SmallLayout) and isinstance(cloud, AwsSpec):
        network = (*_network(len(layout.zones), cloud),)
        of_jobs = (*job_needs.first(spec, layout),), (*job_needs.largest(spec, layout),)
        return Needs((*network, *of_jobs[0]), (*network, *of_jobs[1]))
    if isinstance(layout, SlurmLayout) and isinstance(cloud, AwsSpec):
        return _of_slurm(spec, layout, cloud)
    if not isinstance(layout, ClusterLayout) or not isinstance(cloud, AwsSpec):
        return Needs((), ())
    fixed = (*_fixed(spec, layout, cloud),)
    system = layout.system_pool
    now = [*fixed, *_system(system.machine, system.min_nodes)]
    most = [*fixed, *_system(system.machine, system.max_nodes)]
    for pool in layout.pools:
        now += _pool(pool, max(pool.min_nodes, spec.validated.get(pool.name, 0)))
        most += _pool(pool, pool.max_nodes)
    return Needs(tuple(now), tuple(most))


def _of_slurm(spec: StackSpec, layout: SlurmLayout, cloud: AwsSpec) -> Needs:
    of_home = _in_cluster(spec, layout) if cloud.slinky else _on_service(spec, layout)
    fixed = (*_network(len(layout.zones), cloud), *_file_systems(spec), *of_home)
    now, most = [*fixed], [*fixed]
    for pool in layout.pools:
        now += _pool(pool, max(pool.min_nodes, spec.validated.get(pool.name, 0)))
        most += _pool(pool, pool.max_nodes)
    return Needs(tuple(now), tuple(most))


def _on_service(spec: StackSpec, layout: SlurmLayout) -> Iterator[Demand]:
    machine, disk = layout.login.machine, layout.login.disk_gib / _GIB_PER_TIB
    yield Demand("pcs_clusters", 1, spec.name)
    yield Demand("ec2_on_demand_standard", facts.vcpus(machine) or 0, "layout.login")
    yield Demand("network_interfaces", 1, "layout.login")
    yield Demand("ebs_gp3_tib", disk, "layout.login")


def _in_cluster(spec: StackSpec, layout: SlurmLayout) -> Iterator[Demand]:
    yield Demand("eks_clusters", 1, spec.name)
    yield Demand("eks_node_groups", 1 + sum(len(pool.zones) for pool in layout.pools), spec.name)
    yield from _system(layout.login.machine, SYSTEM_NODES)


def _fixed(spec: StackSpec, layout: ClusterLayout, cloud: AwsSpec) -> Iterator[Demand]:
    yield from _network(len(layout.zones), cloud)
    yield Demand("eks_clusters", 1, spec.name)
    # Each zone of a pool has a group.
    yield Demand("eks_node_groups", 1 + sum(len(pool.zones) for pool in layout.pools), spec.name)
    yield Demand("db_clusters", 1, "tracking")
    yield Demand("db_instances", 1, "tracking")
    if cloud.load_balancer:
        yield Demand("load_balancers", 1, "on.load_balancer")
    yield from _file_systems(spec)


def _file_systems(spec: StackSpec) -> Iterator[Demand]:
    if spec.data.homes:
        yield Demand("efs_file_systems", 1, "data.homes")
    shared = spec.data.shared_fs
    if shared:
        yield Demand("lustre_persistent_2_gib", shared.capacity_gib, "data.shared_fs")


def _network(zones: int, cloud: AwsSpec) -> Iterator[Demand]:
    gateways = zones if cloud.nat == "per_zone" else 1
    yield Demand("vpcs", 1, "network")
    yield Demand("internet_gateways", 1, "network")
    yield Demand("elastic_ips", gateways, "NAT gateways")
    yield Demand("nat_gateways_per_zone", 1, "NAT gateways")
    yield Demand("gateway_endpoints", 1, "network")


def _system(machine: str, nodes: int) -> Iterator[Demand]:
    vcpus = facts.vcpus(machine)
    if vcpus:
        yield Demand("ec2_on_demand_standard", vcpus * nodes, "layout.system_pool")
        yield Demand("network_interfaces", nodes, "layout.system_pool")


def _pool(pool: PoolSpec, nodes: int) -> Iterator[Demand]:
    """The nodes of a pool; reservations count against the quota when they are made."""
    machine, vcpus = facts.instance_types.get(pool.machine), facts.vcpus(pool.machine)
    if not nodes:
        return
    market = _MARKETS.get(pool.purchase.kind)
    key = vcpu_key(pool.machine, market) if market else None
    if key and vcpus:
        yield Demand(key, vcpus * nodes, pool.name)
    # Each EFA device is an interface; those that the CNI adds for pods come on top.
    interfaces = len(machine.efa) if machine and pool.rdma else 1
    yield Demand("network_interfaces", interfaces * nodes, pool.name)
    yield Demand("ebs_gp3_tib", pool.disk_gib * nodes / _GIB_PER_TIB, pool.name)
