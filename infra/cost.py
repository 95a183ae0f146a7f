"""What a stack costs per month before it exists, from its spec and the price catalog; no other I/O.

Three figures per item: `minimum` with every pool at its smallest, `maximum` with every pool at its largest
all month, `expected` in between by the pool's `expected_utilization`. An item without a price is unknown and
is named, never counted as 0. A month has 730 hours, as in AWS's own calculators.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from infra.catalog.aws import facts
from infra.catalog.aws.model import CapacityType, Price, ServicePrice
from infra.catalog.errors import UnknownFactError
from infra.spec.compute import PoolSpec
from infra.spec.stack import StackSpec

HOURS_PER_MONTH = 730.0
# What depends on use that no spec states; told with every estimate.
NOT_INCLUDED = (
    "data transfer and NAT traffic",
    "contents of buckets and of the home file system",
    "volume of logs and metrics",
    "taxes, discounts and savings plans",
)


@dataclass(frozen=True)
class Item:
    """US dollars per month of one part of the stack; all None when no source gives its price."""

    name: str
    minimum: float | None
    expected: float | None
    maximum: float | None
    date: datetime.date | None = None
    source: str | None = None


@dataclass(frozen=True)
class Estimate:
    """The price of a stack per month in US dollars."""

    items: tuple[Item, ...]

    @property
    def known(self) -> tuple[Item, ...]:
        """The items that have a price."""
        return tuple(item for item in self.items if item.expected is not None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the items that have none."""
        return tuple(item.name for item in self.items if item.expected is None)

    @property
    def minimum(self) -> float:
        """Everything at its smallest, of what has a price."""
        return sum(item.minimum or 0.0 for item in self.known)

    @property
    def expected(self) -> float:
        """Everything at its expected use, of what has a price."""
        return sum(item.expected or 0.0 for item in self.known)

    @property
    def maximum(self) -> float:
        """Everything at its largest, of what has a price."""
        return sum(item.maximum or 0.0 for item in self.known)

    @property
    def oldest_price(self) -> datetime.date | None:
        """The day of the oldest price used."""
        return min((item.date for item in self.known if item.date), default=None)


def estimate(spec: StackSpec, on: datetime.date) -> Estimate:
    """Price a stack as of a day, which decides whether its Kubernetes version costs extra."""
    parts = (
        _gpu_pools(spec),
        _system_pool(spec),
        _control_plane(spec, on),
        _network(spec),
        _storage(spec),
        _tracking(spec),
    )
    return Estimate(tuple(item for part in parts for item in part))


def node_price(pool: PoolSpec, region: str) -> Price | None:
    """Dollars per node-hour as the pool buys it; a reservation costs the on-demand price while it stands."""
    bought: dict[str, CapacityType] = {"spot": "spot", "capacity_block": "capacity_block"}
    return facts.price(pool.instance_type, region, bought.get(pool.capacity, "on_demand"))


def _gpu_pools(spec: StackSpec) -> Iterator[Item]:
    for pool in spec.pools:
        price = node_price(pool, spec.region)
        name = f"GPU pool {pool.name} ({pool.instance_type}, {pool.capacity})"
        if price is None:
            yield Item(name, None, None, None)
            continue
        # Reserved capacity is paid whether or not nodes run on it.
        always = pool.max_size if pool.capacity in ("reserved", "capacity_block") else pool.min_size
        nodes = max(always, pool.expected_utilization * pool.max_size)
        yield Item(
            name,
            always * HOURS_PER_MONTH * price.usd_per_hour_min,
            nodes * HOURS_PER_MONTH * price.usd_per_hour_expected,
            pool.max_size * HOURS_PER_MONTH * price.usd_per_hour_max,
            price.date,
            price.source,
        )


def _system_pool(spec: StackSpec) -> Iterator[Item]:
    pool = spec.cluster.system_pool
    price = facts.price(pool.instance_type, spec.region, "on_demand")
    name = f"system pool ({pool.instance_type})"
    if price is None:
        yield Item(name, None, None, None)
        return
    monthly = HOURS_PER_MONTH * price.usd_per_hour_expected
    low, high = pool.min_size * monthly, pool.max_size * monthly
    yield Item(name, low, low, high, price.date, price.source)


def _service(spec: StackSpec, name: str, key: str, units: tuple[float, float, float]) -> Item:
    """An item of so many units per month (least, usual, most) of one service price."""
    try:
        price: ServicePrice | None = facts.service_price(key, spec.region)
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


def _control_plane(spec: StackSpec, on: datetime.date) -> Iterator[Item]:
    support = facts.eks.support(spec.cluster.kubernetes_version, on)
    key = "eks_cluster_extended_support" if support == "extended" else "eks_cluster"
    yield _service(spec, "EKS control plane", key, _always(1))


def _network(spec: StackSpec) -> Iterator[Item]:
    gateways = 1 if spec.network.nat == "single" else len(spec.network.zones)
    yield _service(spec, f"NAT gateways ({gateways})", "nat_gateway", _always(gateways))
    ends = len(spec.network.interface_endpoints) * len(spec.network.zones)
    yield _service(spec, f"interface endpoints ({ends})", "interface_endpoint", _always(ends))


def _storage(spec: StackSpec) -> Iterator[Item]:
    lustre = spec.storage.lustre
    if lustre:
        key = f"fsx_lustre_persistent_2_ssd_{lustre.throughput_mb_s_per_tib}"
        name = f"FSx for Lustre ({lustre.capacity_gib} GiB, {lustre.throughput_mb_s_per_tib} MB/s per TiB)"
        yield _service(spec, name, key, (lustre.capacity_gib,) * 3)


def _tracking(spec: StackSpec) -> Iterator[Item]:
    low, high = spec.tracking.min_acu * HOURS_PER_MONTH, spec.tracking.max_acu * HOURS_PER_MONTH
    usual = max(low, 0.5 * HOURS_PER_MONTH)
    yield _service(spec, "Aurora Serverless v2 (MLflow)", "aurora_serverless_v2", (low, usual, high))
