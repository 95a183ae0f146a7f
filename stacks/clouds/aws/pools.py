"""A pool of the spec on AWS: as arguments of its component, and as a record for layouts."""

from collections.abc import Mapping
from typing import Any

from components.aws.cluster.eks import AwsCluster
from components.aws.network.vpc import AwsNetwork
from components.aws.pools.cpu_pool import AwsCpuPoolArgs
from components.aws.pools.gpu_pool_args import AwsGpuPoolArgs, RepairArgs
from components.aws.pools.live_size import LiveSizeArgs
from components.aws.pools.offers import cpu_offer, link_rates, node_offer, peak_tflops
from infra.catalog.aws import facts
from infra.catalog.aws.pools import layers
from infra.cost.aws.cluster import node_price
from infra.stackspec.aws.cloud import AwsPoolSpec, AwsSpec, RepairSpec
from infra.stackspec.layouts import PoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.sharing import Sharing, counted
from stacks.flavors import flavor_of
from stacks.parts import MachinePool, NodePool
from stacks.sharing import sharing_args


def pool_args(
    pool: PoolSpec,
    on: AwsSpec,
    *,
    eks: AwsCluster,
    network: AwsNetwork,
    live: Mapping[str, LiveSizeArgs],
    node_image: str | None,
    lustre_over_efa: bool,
    tags: Mapping[str, str],
    launch_tags: Mapping[str, str],
    cluster: str = "",
) -> AwsGpuPoolArgs:
    """The arguments of the pool's node group.

    `live` are the sizes of its groups that exist already, by zone, `lustre_over_efa` whether the file system
    serves over EFA.
    """
    common = cpu_pool_args(
        pool,
        eks=eks,
        network=network,
        live=live,
        node_image=node_image,
        tags=tags,
        launch_tags=launch_tags,
        cluster=cluster,
    )
    args: AwsGpuPoolArgs = {
        **common,  # type: ignore[typeddict-item]  # has none of them
        "cluster_security_group_id": eks.security_group_id,
        "efa_security_group_id": network.efa_security_group_id,
        "rdma": pool.rdma,
        "lustre_over_efa": lustre_over_efa,
        "repair": _repair(demanded(on.repair)),
        "labels": {},
    }
    if isinstance(pool.purchase, Reserved | CapacityBlock):
        args["reservation_id"] = pool.purchase.id
    sharing = sharing_of(pool, on)
    if sharing is not None:
        args["sharing"] = sharing_args(sharing)
    return args


def sharing_of(pool: PoolSpec, on: AwsSpec) -> Sharing:
    """Sharing of the pool's GPUs; None where each pod has its own."""
    return on.pools.get(pool.name, AwsPoolSpec()).sharing


def cpu_pool_args(
    pool: PoolSpec,
    *,
    eks: AwsCluster,
    network: AwsNetwork,
    live: Mapping[str, LiveSizeArgs],
    node_image: str | None,
    tags: Mapping[str, str],
    launch_tags: Mapping[str, str],
    cluster: str = "",
) -> AwsCpuPoolArgs:
    """The arguments of the node group of a pool without GPUs."""
    args: AwsCpuPoolArgs = {
        "pool": pool.name,
        "purpose": pool.purpose,
        "cluster_name": eks.cluster_name,
        "kubernetes_version": eks.kubernetes_version,
        "node_role_arn": eks.node_role_arn,
        "machine": pool.machine,
        "subnets": {zone: network.private_subnet_id_by_zone[zone] for zone in pool.zones},
        "purchase": pool.purchase.kind,
        "min_nodes": pool.min_nodes,
        "max_nodes": pool.max_nodes,
        "disk_gib": pool.disk_gib,
        "disk_key_arn": eks.disk_key_arn,
        "tags": tags,
        "launch_tags": launch_tags,
        "live": live,
    }
    if node_image is not None:
        args["node_image"] = node_image
    if cluster:
        args["cluster"] = cluster
    return args


def _repair(wanted: RepairSpec) -> RepairArgs:
    return {
        "at_once": wanted.at_once,
        "stop_above": wanted.stop_above,
        "rules": [
            {
                "condition": rule.condition,
                "reason": rule.reason,
                "after_minutes": rule.after_minutes,
                "action": rule.action,
            }
            for rule in wanted.rules
        ],
    }


def machine_pool(pool: PoolSpec, region: str) -> MachinePool:
    """Record of a pool without Kubernetes, with whole GPUs."""
    price, processors = node_price(pool, region), facts.cpu_type(pool.machine)
    known = dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(processors)
    else:
        machine = facts.instance_type(pool.machine)
        offer = node_offer(machine, "device_plugin" if pool.rdma else None)
        known = {"peak_tflops": peak_tflops(machine), **link_rates(machine, efa=pool.rdma)}
    usd = price.usd_per_hour_expected if price else None
    return MachinePool(machine=pool.machine, offer=offer, usd_per_hour=usd, facts=known)


def pool_record(pool: PoolSpec, on: AwsSpec, labels: Mapping[str, str], *, region: str) -> NodePool:
    """Record of the pool for layouts; its nodes have these labels."""
    price = node_price(pool, region)
    usd_per_hour = price.usd_per_hour_expected if price else None
    processors, known = facts.cpu_type(pool.machine), dict[str, Any]()
    if processors is not None:
        offer = cpu_offer(processors)
    else:
        machine = facts.instance_type(pool.machine)
        driver = demanded(on.efa_driver) if pool.rdma else None
        offer = node_offer(machine, driver, **counted(sharing_of(pool, on)))
        known = {"peak_tflops": peak_tflops(machine), **link_rates(machine, efa=pool.rdma)}
    drain = facts.block_drain_minutes
    return NodePool(
        machine=pool.machine,
        offer=offer,
        usd_per_hour=usd_per_hour,
        facts=known,
        labels=labels,
        flavor=flavor_of(pool, offer, usd_per_hour, layers=layers(pool.machine), drain_minutes=drain),
    )
