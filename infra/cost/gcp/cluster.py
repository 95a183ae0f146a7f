"""Price of stacks with a cluster on Google Cloud."""

import datetime
from collections.abc import Iterator
from typing import Final

from infra.catalog.gcp import facts
from infra.catalog.gcp.database import SHARED_CORES, tier
from infra.catalog.gcp.model import Market
from infra.catalog.gcp.pools import SYSTEM_DISK_GIB
from infra.catalog.gcp.prices import NodePrice, node_price
from infra.catalog.gcp.storage_classes import COLD, COOL, STANDARD
from infra.cost.checkpoints import busy_share, checkpoint_items
from infra.cost.model import HOURS_PER_MONTH, CostEstimate, CostItem, UsageCost
from infra.cost.tariff import Tariff, Units, always, machines, paid_nodes
from infra.stackspec.gcp.cloud import GcpSpec
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.stack import StackSpec

_KEYS: Final = 2
"""Customer-managed keys, each with one version until it is rotated: of the cluster, of data and database."""
_SECRETS: Final = 1
"""Of MLflow's first user; the database is logged in to with tokens."""
_NAT_MACHINES: Final = 32
"""Number of machines behind a gateway that are billed; further ones are free."""

_USES_OF_ALL: Final = (("NAT traffic", "cloud_nat_data"), ("logs", "logs_ingested"))
"""Uses that every cluster is billed for."""

_MARKETS: Final[dict[str, Market]] = {
    "spot": "spot",
    "flex_start": "flex_start",
    "queued": "flex_start",
    "block": "calendar",
}


def one_cluster(spec: StackSpec, layout: ClusterLayout, cloud: GcpSpec, on: datetime.date) -> CostEstimate:
    """Price a stack of one cluster as of a day."""
    parts = (
        _pools(spec.region, layout),
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        _network(spec.region, layout),
        _storage(spec, cloud),
        checkpoint_items(spec, busy_share(layout), _tariff(spec.region), (STANDARD, COOL, COLD)),
        database_items(spec.region, cloud),
        _keys(spec.region),
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses(spec, cloud)))


def manager(spec: StackSpec, layout: ClusterLayout, on: datetime.date) -> CostEstimate:
    """Price the manager of several clusters, which has no pools, no storage of jobs and no tracking."""
    parts = (
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        _network(spec.region, layout),
        _keys(spec.region, keys=1, secrets=0),
    )
    uses = [_tariff(spec.region).use(name, key) for name, key in _USES_OF_ALL]
    uses += [UsageCost(name) for name in ("requests", "metrics", "external addresses", "data transfer")]
    return CostEstimate(
        tuple(item for part in parts for item in part), (*uses, UsageCost("taxes and discounts"))
    )


def pool_price(pool: PoolSpec, region: str) -> NodePrice | None:
    """Dollars per node-hour as the pool buys it; a reservation costs the on-demand price while it stands."""
    return node_price(pool.machine, region, _MARKETS.get(pool.purchase.kind, "on_demand"))


def nodes_of(pool: PoolSpec) -> Units:
    """Billed nodes of a pool; reserved capacity is billed whether or not nodes run on it."""
    paid = paid_nodes(pool)
    return paid, max(paid, _running(pool)), pool.max_nodes


def _running(pool: PoolSpec) -> float:
    return pool.expected_utilization * pool.max_nodes


def _pools(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    for pool in layout.pools:
        kind = "CPU" if pool.machine in facts.cpu_types else "GPU"
        name = f"{kind} pool {pool.name} ({pool.machine}, {pool.purchase.kind})"
        yield _machines(name, pool_price(pool, region), nodes_of(pool))
        disks = (pool.min_nodes, max(pool.min_nodes, _running(pool)), pool.max_nodes)
        yield _disks(region, f"pool {pool.name}", pool.disk_gib, disks)


def _system_pool(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    pool = layout.system_pool
    nodes = (pool.min_nodes, pool.min_nodes, pool.max_nodes)
    yield _machines(f"system pool ({pool.machine})", node_price(pool.machine, region, "on_demand"), nodes)
    yield _disks(region, "the system pool", SYSTEM_DISK_GIB, nodes)


def _monitoring(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    wanted = layout.monitoring
    if wanted.kind == "in_cluster":
        gib = wanted.storage_gib
        yield _tariff(region).item(f"disk of the monitoring ({gib} GiB)", "pd_balanced", always(gib))


def _machines(name: str, price: NodePrice | None, nodes: Units) -> CostItem:
    usd = (price.least, price.expected, price.most) if price else None
    return machines(name, usd, nodes, price.renew if price else None)


def _disks(region: str, owner: str, gib: int, nodes: Units) -> CostItem:
    least, usual, most = nodes
    units = (least * gib, usual * gib, most * gib)
    return _tariff(region).item(f"boot disks of {owner} ({gib} GiB)", "pd_balanced", units)


def _tariff(region: str) -> Tariff:
    return Tariff(facts.service_price, region)


def _control_plane(region: str, layout: ClusterLayout, on: datetime.date) -> Iterator[CostItem]:
    support = facts.gke.support(layout.kubernetes_version, on)
    key = "gke_cluster_extended_support" if support == "extended" else "gke_cluster"
    yield _tariff(region).item("GKE control plane", key, always(HOURS_PER_MONTH))


def _network(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    """One Cloud NAT gateway, by the machines behind it."""
    system = layout.system_pool
    least = system.min_nodes + sum(pool.min_nodes for pool in layout.pools)
    usual = system.min_nodes + sum(max(pool.min_nodes, _running(pool)) for pool in layout.pools)
    most = system.max_nodes + sum(pool.max_nodes for pool in layout.pools)
    low, middle, high = (min(count, _NAT_MACHINES) * HOURS_PER_MONTH for count in (least, usual, most))
    yield _tariff(region).item("Cloud NAT", "cloud_nat_vm", (low, middle, high))


def _storage(spec: StackSpec, cloud: GcpSpec) -> Iterator[CostItem]:
    lustre = spec.data.shared_fs
    if lustre:
        key = f"managed_lustre_{lustre.throughput_mb_s_per_tib}"
        name = f"Managed Lustre ({lustre.capacity_gib} GiB, {lustre.throughput_mb_s_per_tib} MB/s per TiB)"
        yield _tariff(spec.region).item(name, key, always(lustre.capacity_gib))
    if spec.data.homes:
        name = f"home directories ({cloud.homes_size_gib} GiB of Filestore)"
        yield _tariff(spec.region).item(name, "filestore_regional", always(cloud.homes_size_gib))


def database_items(region: str, cloud: GcpSpec) -> Iterator[CostItem]:
    """Cloud SQL behind MLflow, which always runs."""
    size, kind = tier(cloud.database.tier), cloud.database.availability
    if cloud.database.tier in SHARED_CORES:
        key = f"cloud_sql_{cloud.database.tier}_{kind}"
        yield _tariff(region).item(f"Cloud SQL {cloud.database.tier} (MLflow)", key, always(HOURS_PER_MONTH))
    if size is not None:
        hours, memory = size.vcpu * HOURS_PER_MONTH, size.gib * HOURS_PER_MONTH
        yield _tariff(region).item("Cloud SQL processors (MLflow)", f"cloud_sql_vcpu_{kind}", always(hours))
        yield _tariff(region).item("Cloud SQL memory (MLflow)", f"cloud_sql_gib_{kind}", always(memory))
    disk = always(cloud.database.disk_gib)
    yield _tariff(region).item(
        f"Cloud SQL disk ({cloud.database.disk_gib} GiB)", f"cloud_sql_ssd_{kind}", disk
    )


def _keys(region: str, *, keys: int = _KEYS, secrets: int = _SECRETS) -> Iterator[CostItem]:
    yield _tariff(region).item(f"KMS keys ({keys})", "kms_key_version", always(keys))
    if secrets:
        yield _tariff(region).item(f"secrets ({secrets})", "secret_version", always(secrets))


def _uses(spec: StackSpec, cloud: GcpSpec) -> Iterator[UsageCost]:
    by_use = [
        ("NAT traffic", "cloud_nat_data"),
        ("bucket contents", "gcs_standard"),
        *([("dataset cache", "anywhere_cache")] if cloud.dataset_cache else []),
        *([("Rapid bucket", "gcs_rapid")] if cloud.rapid_checkpoints else []),
        ("logs", "logs_ingested"),
    ]
    for name, key in by_use:
        yield _tariff(spec.region).use(name, key)
    for name in (
        "requests",
        "metrics",
        "backups",
        "external addresses",
        "data transfer",
        "taxes and discounts",
    ):
        yield UsageCost(name)
