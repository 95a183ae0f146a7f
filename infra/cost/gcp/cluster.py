"""Price of stacks with a cluster on Google Cloud."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
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
from infra.stackspec.model import demanded
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
        pool_items(spec.region, layout.pools),
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        _network(spec.region, layout),
        file_system_items(spec, cloud),
        checkpoint_items(spec, busy_share(layout), tariff_of(spec.region), (STANDARD, COOL, COLD)),
        database_items(spec.region, cloud),
        key_items(spec.region),
    )
    return CostEstimate(tuple(item for part in parts for item in part), tuple(_uses(spec, cloud)))


def manager(spec: StackSpec, layout: ClusterLayout, on: datetime.date) -> CostEstimate:
    """Price the manager of several clusters, which has no pools, no storage of jobs and no tracking."""
    parts = (
        _system_pool(spec.region, layout),
        _monitoring(spec.region, layout),
        _control_plane(spec.region, layout, on),
        _network(spec.region, layout),
        key_items(spec.region, keys=1, secrets=0),
    )
    uses = [tariff_of(spec.region).use(name, key) for name, key in _USES_OF_ALL]
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


def pool_items(region: str, pools: Iterable[PoolSpec]) -> Iterator[CostItem]:
    """Machines and boot disks of pools."""
    for pool in pools:
        kind = "CPU" if pool.machine in facts.cpu_types else "GPU"
        name = f"{kind} pool {pool.name} ({pool.machine}, {pool.purchase.kind})"
        yield machine_item(name, pool_price(pool, region), nodes_of(pool))
        disks = (pool.min_nodes, max(pool.min_nodes, _running(pool)), pool.max_nodes)
        yield disk_item(region, f"pool {pool.name}", pool.disk_gib, disks)


def _system_pool(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    pool = layout.system_pool
    nodes = (pool.min_nodes, pool.min_nodes, pool.max_nodes)
    yield machine_item(f"system pool ({pool.machine})", node_price(pool.machine, region, "on_demand"), nodes)
    yield disk_item(region, "the system pool", SYSTEM_DISK_GIB, nodes)


def _monitoring(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    wanted = layout.monitoring
    if wanted.kind == "in_cluster":
        gib = wanted.storage_gib
        yield tariff_of(region).item(f"disk of the monitoring ({gib} GiB)", "pd_balanced", always(gib))


def machine_item(name: str, price: NodePrice | None, nodes: Units) -> CostItem:
    """Machines at their price."""
    usd = (price.least, price.expected, price.most) if price else None
    return machines(name, usd, nodes, price.renew if price else None)


def disk_item(region: str, owner: str, gib: int, nodes: Units) -> CostItem:
    """Boot disks of machines."""
    least, usual, most = nodes
    units = (least * gib, usual * gib, most * gib)
    return tariff_of(region).item(f"boot disks of {owner} ({gib} GiB)", "pd_balanced", units)


def tariff_of(region: str) -> Tariff:
    """Prices of services in a region."""
    return Tariff(facts.service_price, region)


def _control_plane(region: str, layout: ClusterLayout, on: datetime.date) -> Iterator[CostItem]:
    support = facts.gke.support(layout.kubernetes_version, on)
    key = "gke_cluster_extended_support" if support == "extended" else "gke_cluster"
    yield tariff_of(region).item("GKE control plane", key, always(HOURS_PER_MONTH))


def _network(region: str, layout: ClusterLayout) -> Iterator[CostItem]:
    system = layout.system_pool
    yield nat_item(region, layout.pools, (system.min_nodes, system.min_nodes, system.max_nodes))


def nat_item(region: str, pools: Sequence[PoolSpec], others: Units) -> CostItem:
    """One Cloud NAT gateway, by the machines behind it: those of pools, and `others`."""
    low, usual, high = others
    counts = (
        low + sum(pool.min_nodes for pool in pools),
        usual + sum(max(pool.min_nodes, _running(pool)) for pool in pools),
        high + sum(pool.max_nodes for pool in pools),
    )
    least, middle, most = (min(count, _NAT_MACHINES) * HOURS_PER_MONTH for count in counts)
    return tariff_of(region).item("Cloud NAT", "cloud_nat_vm", (least, middle, most))


def file_system_items(spec: StackSpec, cloud: GcpSpec) -> Iterator[CostItem]:
    """Managed Lustre and homes."""
    lustre = spec.data.shared_fs
    if lustre:
        key = f"managed_lustre_{lustre.throughput_mb_s_per_tib}"
        name = f"Managed Lustre ({lustre.capacity_gib} GiB, {lustre.throughput_mb_s_per_tib} MB/s per TiB)"
        yield tariff_of(spec.region).item(name, key, always(lustre.capacity_gib))
    if spec.data.homes:
        name = f"home directories ({cloud.homes_size_gib} GiB of Filestore)"
        yield tariff_of(spec.region).item(name, "filestore_regional", always(cloud.homes_size_gib))


def database_items(region: str, cloud: GcpSpec) -> Iterator[CostItem]:
    """Cloud SQL behind MLflow, which always runs."""
    wanted = demanded(cloud.database)
    size, kind = tier(wanted.tier), wanted.availability
    if wanted.tier in SHARED_CORES:
        key = f"cloud_sql_{wanted.tier}_{kind}"
        yield tariff_of(region).item(f"Cloud SQL {wanted.tier} (MLflow)", key, always(HOURS_PER_MONTH))
    if size is not None:
        hours, memory = size.vcpu * HOURS_PER_MONTH, size.gib * HOURS_PER_MONTH
        yield tariff_of(region).item("Cloud SQL processors (MLflow)", f"cloud_sql_vcpu_{kind}", always(hours))
        yield tariff_of(region).item("Cloud SQL memory (MLflow)", f"cloud_sql_gib_{kind}", always(memory))
    disk = always(wanted.disk_gib)
    yield tariff_of(region).item(f"Cloud SQL disk ({wanted.disk_gib} GiB)", f"cloud_sql_ssd_{kind}", disk)


def key_items(region: str, *, keys: int = _KEYS, secrets: int = _SECRETS) -> Iterator[CostItem]:
    """Keys and secrets."""
    yield tariff_of(region).item(f"KMS keys ({keys})", "kms_key_version", always(keys))
    if secrets:
        yield tariff_of(region).item(f"secrets ({secrets})", "secret_version", always(secrets))


def _uses(spec: StackSpec, cloud: GcpSpec) -> Iterator[UsageCost]:
    by_use = [
        ("NAT traffic", "cloud_nat_data"),
        ("bucket contents", "gcs_standard"),
        *([("dataset cache", "anywhere_cache")] if cloud.dataset_cache else []),
        *([("Rapid bucket", "gcs_rapid")] if cloud.rapid_checkpoints else []),
        ("logs", "logs_ingested"),
    ]
    for name, key in by_use:
        yield tariff_of(spec.region).use(name, key)
    for name in (
        "requests",
        "metrics",
        "backups",
        "external addresses",
        "data transfer",
        "taxes and discounts",
    ):
        yield UsageCost(name)
