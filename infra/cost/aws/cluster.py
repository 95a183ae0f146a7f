"""Price of stacks with a cluster on AWS."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Final

from infra.alarms import storage as storage_alarms
from infra.catalog.aws import facts
from infra.catalog.aws.model import CapacityType, InstancePrice
from infra.catalog.aws.pools import SYSTEM_DISK_GIB
from infra.catalog.aws.storage_classes import COLD, COOL, STANDARD
from infra.cost.aws.usage import uses
from infra.cost.checkpoints import busy_share, checkpoint_items
from infra.cost.model import HOURS_PER_MONTH, CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, Units, always, machines, paid_nodes
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.model import demanded
from infra.stackspec.stack import StackSpec

_KEYS: Final = 4
"""Customer-managed keys: of the cluster, its data, the flow logs, the log of the database."""
_SECRETS: Final = 2
"""Of MLflow's first user, and the one in which RDS keeps the password of the database."""


def one_cluster(spec: StackSpec, layout: ClusterLayout, cloud: AwsSpec, on: datetime.date) -> CostEstimate:
    """Price a stack of one cluster as of a day."""
    parts = (
        pool_items(spec.region, layout.pools),
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        network_items(spec.region, len(layout.zones), cloud),
        storage_items(spec),
        checkpoint_items(spec, busy_share(layout), _tariff(spec.region), (STANDARD, COOL, COLD)),
        _tracking(spec.region, cloud),
        _load_balancer(spec.region, cloud),
        _keys(spec, layout),
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(uses(spec, layout, cloud)))


def manager(spec: StackSpec, layout: ClusterLayout, cloud: AwsSpec, on: datetime.date) -> CostEstimate:
    """Price the manager of several clusters, which has no pools, no storage of jobs and no tracking."""
    parts = (
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        network_items(spec.region, len(layout.zones), cloud),
    )
    between = UsageCost("traffic between the networks of the clusters")
    return CostEstimate(tuple(item for part in parts for item in part), (between,))


def node_price(pool: PoolSpec, region: str) -> InstancePrice | None:
    """Dollars per node-hour as the pool buys it; a reservation costs the on-demand price while it stands."""
    bought: dict[str, CapacityType] = {"spot": "spot", "block": "capacity_block"}
    return facts.price(pool.machine, region, bought.get(pool.purchase.kind, "on_demand"))


def pool_items(region: str, pools: Iterable[PoolSpec]) -> Iterator[CostItem]:
    """Price of the machines of pools and of their disks."""
    for pool in pools:
        paid = paid_nodes(pool)
        running = pool.expected_utilization * pool.max_nodes
        nodes = (paid, max(paid, running), pool.max_nodes)
        kind = "CPU" if pool.machine in facts.cpu_types else "GPU"
        name = f"{kind} pool {pool.name} ({pool.machine}, {pool.purchase.kind})"
        yield machine_item(name, node_price(pool, region), nodes)
        # A disk exists while its node does.
        disks = (pool.min_nodes, max(pool.min_nodes, running), pool.max_nodes)
        yield disk_item(region, f"pool {pool.name}", pool.disk_gib, disks)


def _system_pool(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    pool = layout.system_pool
    nodes = (pool.min_nodes, pool.min_nodes, pool.max_nodes)
    price = facts.price(pool.machine, region, "on_demand")
    yield machine_item(f"system pool ({pool.machine})", price, nodes)
    yield disk_item(region, "the system pool", SYSTEM_DISK_GIB, nodes)


def _monitoring(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    wanted = layout.monitoring
    if wanted.kind == "in_cluster":
        gib = wanted.storage_gib
        yield _tariff(region).item(f"disk of the monitoring ({gib} GiB)", "ebs_gp3", always(gib))


def machine_item(name: str, price: InstancePrice | None, nodes: Units) -> CostItem:
    """Price of machines of one type."""
    usd = (price.usd_per_hour_min, price.usd_per_hour_expected, price.usd_per_hour_max) if price else None
    return machines(name, usd, nodes, price)


def disk_item(region: str, owner: str, gib: int, nodes: Units) -> CostItem:
    """Price of root disks, which exist while their nodes do."""
    least, usual, most = nodes
    return _tariff(region).item(
        f"root disks of {owner} ({gib} GiB)", "ebs_gp3", (least * gib, usual * gib, most * gib)
    )


def _tariff(region: str) -> Tariff:
    return Tariff(facts.service_price, region)


def _control_plane(region: str, layout: ClusterLayout, on: datetime.date) -> Iterator[CostItem]:
    support = facts.eks.support(layout.kubernetes_version, on)
    key = "eks_cluster_extended_support" if support == "extended" else "eks_cluster"
    yield _tariff(region).item("EKS control plane", key, always(HOURS_PER_MONTH))


def network_items(region: str, zones: int, cloud: AwsSpec) -> Iterator[CostItem]:
    """Price of NAT gateways, public addresses and endpoints in `zones` zones."""
    gateways = 1 if cloud.nat == "single" else zones
    hours = always(gateways * HOURS_PER_MONTH)
    yield _tariff(region).item(f"NAT gateways ({gateways})", "nat_gateway", hours)
    yield _tariff(region).item(f"public addresses ({gateways})", "public_ipv4", hours)
    ends = len(cloud.endpoints) * zones
    hours = always(ends * HOURS_PER_MONTH)
    yield _tariff(region).item(f"interface endpoints ({ends})", "interface_endpoint", hours)


def storage_items(spec: StackSpec) -> Iterator[CostItem]:
    """Price of the shared file system."""
    lustre = spec.data.shared_fs
    if lustre:
        key = f"fsx_lustre_persistent_2_ssd_{lustre.throughput_mb_s_per_tib}"
        name = f"FSx for Lustre ({lustre.capacity_gib} GiB, {lustre.throughput_mb_s_per_tib} MB/s per TiB)"
        yield _tariff(spec.region).item(name, key, always(lustre.capacity_gib))


def _tracking(region: str, cloud: AwsSpec) -> Iterator[CostItem]:
    database = demanded(cloud.database)
    low, high = database.min_acu * HOURS_PER_MONTH, database.max_acu * HOURS_PER_MONTH
    usual = max(low, 0.5 * HOURS_PER_MONTH)
    yield _tariff(region).item("Aurora Serverless v2 (MLflow)", "aurora_serverless_v2", (low, usual, high))


def _load_balancer(region: str, cloud: AwsSpec) -> Iterator[CostItem]:
    if cloud.load_balancer is not None:
        hours = always(HOURS_PER_MONTH)
        yield _tariff(region).item("load balancer (MLflow)", "application_load_balancer", hours)


def _keys(spec: StackSpec, layout: ClusterLayout) -> Iterator[CostItem]:
    # Monitoring adds the key of pod logs, storage alarms that of the topic.
    keys = _KEYS + (layout.monitoring.kind == "in_cluster") + storage_alarms.on_aws(spec)
    yield _tariff(spec.region).item(f"KMS keys ({keys})", "kms_key", always(keys))
    yield _tariff(spec.region).item(f"secrets ({_SECRETS})", "secret", always(_SECRETS))
