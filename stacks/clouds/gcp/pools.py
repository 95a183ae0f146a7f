"""A pool of the spec on Google Cloud: as arguments of its component, and as a record for layouts."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.gcp.cluster.gke import GcpCluster
from components.gcp.network.accelerators import NodeNetwork
from components.gcp.pools.args import PoolArgs
from components.gcp.pools.cpu_pool import GcpCpuPoolArgs
from components.gcp.pools.gpu_pool import QUEUED_KEY
from components.gcp.pools.gpu_pool_args import GcpGpuPoolArgs
from components.gcp.pools.offers import QUEUED_CLASS, cpu_offer, link_rates, node_offer, peak_tflops
from components.kubernetes.offers import NodeOffer
from infra.catalog.gcp import facts
from infra.catalog.gcp.fabrics import making
from infra.catalog.gcp.model import MachineType
from infra.catalog.gcp.pools import layers
from infra.cost.gcp.cluster import pool_price
from infra.stackspec import StackSpec
from infra.stackspec.gcp.cloud import GcpPoolSpec, GcpSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.rules.gcp.gpu_networks import fast_pools
from infra.stackspec.sharing import counted
from stacks.clouds.gcp.gpu_networks import pod_networks
from stacks.flavors import flavor_of
from stacks.parts import NodePool
from stacks.sharing import sharing_args


def is_classic(pool: PoolSpec, on: GcpSpec) -> bool:
    """Return whether this stack creates the networks beside the GPUs of a pool."""
    return pool.rdma and making(pool.machine, demanded(on.accelerator_networks)) == "classic"


def gpu_pool_args(
    pool: PoolSpec,
    on: GcpSpec,
    *,
    cluster: GcpCluster,
    attachments: Sequence[NodeNetwork] | None,
    labels: Mapping[str, str],
) -> GcpGpuPoolArgs:
    """The arguments of a pool with GPUs; `attachments` are its networks where this stack creates them."""
    extra = on.pools.get(pool.name, GcpPoolSpec())
    args: GcpGpuPoolArgs = {
        **_common(pool, on, cluster=cluster, labels=labels),  # type: ignore[typeddict-item]  # has none of them
        "driver": extra.driver,
        "rdma": pool.rdma,
        "compact": extra.compact,
        "labels": {},
    }
    if isinstance(pool.purchase, Reserved | CapacityBlock):
        args["reservation_id"] = pool.purchase.id
    if attachments is not None:
        args["attachments"] = attachments
    if extra.sharing is not None:
        args["sharing"] = sharing_args(extra.sharing)
    if extra.local_ssds is not None:
        args["local_ssds"] = extra.local_ssds
    if extra.image_cache is not None:
        args["image_cache"] = extra.image_cache
    return args


def cpu_pool_args(
    pool: PoolSpec, on: GcpSpec, *, cluster: GcpCluster, labels: Mapping[str, str]
) -> GcpCpuPoolArgs:
    """The arguments of a pool without GPUs."""
    return {**_common(pool, on, cluster=cluster, labels=labels)}


def _common(pool: PoolSpec, on: GcpSpec, *, cluster: GcpCluster, labels: Mapping[str, str]) -> PoolArgs:
    return {
        "pool": pool.name,
        "purpose": pool.purpose,
        "cluster": cluster.cluster_name,
        "location": cluster.location,
        "zones": pool.zones,
        "machine": pool.machine,
        "node_service_account": cluster.node_service_account,
        "boot_disk_key": cluster.key_id,
        "disk_gib": pool.disk_gib,
        "purchase": pool.purchase.kind,
        "min_nodes": pool.min_nodes,
        "max_nodes": pool.max_nodes,
        "pods_per_node": demanded(on.pods_per_node),
        "resource_labels": labels,
    }


def pool_record(
    pool: PoolSpec, on: GcpSpec, labels: Mapping[str, str], *, region: str, networks: Sequence[str] | None
) -> NodePool:
    """Record of the pool for layouts; `networks` are the Network objects of its pods, if any."""
    price = pool_price(pool, region)
    usd_per_hour = price.expected if price else None
    processors, known = facts.cpu_type(pool.machine), dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(
            processors.vcpu,
            processors.memory_gib,
            pods_per_node=demanded(on.pods_per_node),
            disk_gib=pool.disk_gib,
        )
    else:
        machine = facts.machine_type(pool.machine)
        offer = _gpu_offer(pool, on, machine, networks or ())
        known = {"peak_tflops": peak_tflops(machine), **link_rates(machine, rdma=pool.rdma)}
    passed = layers(pool.machine, pool.purchase.kind)
    flavor = flavor_of(pool, offer, usd_per_hour, layers=passed, drain_minutes=facts.block_drain_minutes)
    if pool.purchase.kind == "queued":
        flavor["provisioning_class"], flavor["taint"] = QUEUED_CLASS, QUEUED_KEY
    return NodePool(
        machine=pool.machine,
        offer=offer,
        usd_per_hour=usd_per_hour,
        facts=known,
        labels=labels,
        flavor=flavor,
    )


def pool_records(spec: StackSpec, layout: ClusterLayout, on: GcpSpec) -> dict[str, NodePool]:
    """Records of all pools of a cluster by name, without labels of nodes."""
    names = pod_networks(fast_pools(layout, on), on.first_rdma_zone)
    return {
        pool.name: pool_record(pool, on, {}, region=spec.region, networks=names.get(pool.name))
        for pool in layout.pools
    }


def _gpu_offer(pool: PoolSpec, on: GcpSpec, machine: MachineType, networks: Sequence[str]) -> NodeOffer:
    extra = on.pools.get(pool.name, GcpPoolSpec())
    return node_offer(
        machine,
        pods_per_node=demanded(on.pods_per_node),
        disk_gib=pool.disk_gib,
        rdma=pool.rdma,
        networks=networks,
        local_ssds=extra.local_ssds,
        **counted(extra.sharing),
    )
