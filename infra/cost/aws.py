"""The price of stacks on AWS."""

import datetime
from collections.abc import Iterator

from infra.catalog.aws import facts
from infra.catalog.aws.model import CapacityType, Price, ServicePrice
from infra.catalog.errors import UnknownFactError
from infra.cost.model import HOURS_PER_MONTH, Estimate, Item
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import MediumLayout, PoolSpec
from infra.stackspec.stack import StackSpec


def medium(spec: StackSpec, layout: MediumLayout, cloud: AwsSpec, on: datetime.date) -> Estimate:
    """Price a medium stack as of a day."""
    parts = (
        _gpu_pools(spec.region, layout),
        _system_pool(spec.region, layout),
        _control_plane(spec.region, layout, on),
        _network(spec.region, layout, cloud),
        _storage(spec),
        _tracking(spec.region, cloud),
    )
    return Estimate(tuple(item for part in parts for item in part))


def node_price(pool: PoolSpec, region: str) -> Price | None:
    """Dollars per node-hour as the pool buys it; a reservation costs the on-demand price while it stands."""
    bought: dict[str, CapacityType] = {"spot": "spot", "block": "capacity_block"}
    return facts.price(pool.machine, region, bought.get(pool.purchase.kind, "on_demand"))


def _gpu_pools(region: str, layout: MediumLayout) -> Iterator[Item]:
    for pool in layout.pools:
        price = node_price(pool, region)
        name = f"GPU pool {pool.name} ({pool.machine}, {pool.purchase.kind})"
        if price is None:
            yield Item(name, None, None, None)
            continue
        # Reserved capacity is paid whether or not nodes run on it.
        always = pool.max_nodes if pool.purchase.kind in ("reserved", "block") else pool.min_nodes
        nodes = max(always, pool.expected_utilization * pool.max_nodes)
        yield Item(
            name,
            always * HOURS_PER_MONTH * price.usd_per_hour_min,
            nodes * HOURS_PER_MONTH * price.usd_per_hour_expected,
            pool.max_nodes * HOURS_PER_MONTH * price.usd_per_hour_max,
            price.date,
            price.source,
        )


def _system_pool(region: str, layout: MediumLayout) -> Iterator[Item]:
    pool = layout.system_pool
    price = facts.price(pool.machine, region, "on_demand")
    name = f"system pool ({pool.machine})"
    if price is None:
        yield Item(name, None, None, None)
        return
    monthly = HOURS_PER_MONTH * price.usd_per_hour_expected
    low, high = pool.min_nodes * monthly, pool.max_nodes * monthly
    yield Item(name, low, low, high, price.date, price.source)


def _service(region: str, name: str, key: str, units: tuple[float, float, float]) -> Item:
    """An item of so many units per month (least, usual, most) of one service price."""
    try:
        price: ServicePrice | None = facts.service_price(key, region)
    except UnknownFactError:
        price = None
    if price is None:
        return Item(name, None, None, None)
    low, usual, high = (amount * price.usd for amount in units)
    return Item(name, low, usual, high, price.date, price.source)


def _always(count: int) -> tuple[float, float, float]:
    """The hours of `count` things that run all month."""
    hours = count * HOURS_PER_MONTH
    return hours, hours, hours


def _control_plane(region: str, layout: MediumLayout, on: datetime.date) -> Iterator[Item]:
    support = facts.eks.support(layout.kubernetes_version, on)
    key = "eks_cluster_extended_support" if support == "extended" else "eks_cluster"
    yield _service(region, "EKS control plane", key, _always(1))


def _network(region: str, layout: MediumLayout, cloud: AwsSpec) -> Iterator[Item]:
    gateways = 1 if cloud.nat == "single" else len(layout.zones)
    yield _service(region, f"NAT gateways ({gateways})", "nat_gateway", _always(gateways))
    ends = len(cloud.endpoints) * len(layout.zones)
    yield _service(region, f"interface endpoints ({ends})", "interface_endpoint", _always(ends))


def _storage(spec: StackSpec) -> Iterator[Item]:
    lustre = spec.data.shared_fs
    if lustre:
        key = f"fsx_lustre_persistent_2_ssd_{lustre.throughput_mb_s_per_tib}"
        name = f"FSx for Lustre ({lustre.capacity_gib} GiB, {lustre.throughput_mb_s_per_tib} MB/s per TiB)"
        yield _service(spec.region, name, key, (lustre.capacity_gib,) * 3)


def _tracking(region: str, cloud: AwsSpec) -> Iterator[Item]:
    low, high = cloud.database.min_acu * HOURS_PER_MONTH, cloud.database.max_acu * HOURS_PER_MONTH
    usual = max(low, 0.5 * HOURS_PER_MONTH)
    yield _service(region, "Aurora Serverless v2 (MLflow)", "aurora_serverless_v2", (low, usual, high))
