"""GPU pools of a stack as capacity: what is committed, for how long, and prices by market."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.cost.rates import Market, gpu_shares, node_gpus, node_rate
from infra.cost.tariff import paid_nodes
from infra.errors import Problem, UserError
from infra.naming import flavor_name
from infra.stackspec.layouts import ClusterLayout, PoolSpec
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.stack import StackSpec
from trainstack.capacity.periods import HOUR, TimeSpan, days

MARKETS: tuple[Market, ...] = ("own", "on_demand", "spot", "block")


@dataclass(frozen=True)
class GpuHourRate:
    """US dollars per GPU-hour, with the source and the date of the price."""

    usd: float
    source: str
    date: datetime.date
    old: bool
    """Older than its source allows."""


@dataclass(frozen=True)
class PoolCapacity:
    """A pool with GPUs. Its class is its machine type."""

    pool: str
    path: str
    """Its path in the stack file."""
    flavor: str
    """Its name in the ledger and in queues."""
    machine: str
    kind: str
    """Kind of its purchase."""
    reservation: str | None
    node_gpus: int
    """Devices of a node, as the ledger counts them."""
    max_nodes: int
    nodes: int
    """Committed nodes: those of a reservation or block, else the minimum, which is billed as well."""
    period: TimeSpan
    """Of the commitment."""
    rates: Mapping[Market, GpuHourRate | None]
    """By market; None: no source."""

    @property
    def prepaid(self) -> bool:
        """Return whether it is on a reservation."""
        return self.reservation is not None

    @property
    def commitment(self) -> str:
        """Kind of the commitment: of the reservation, else `min_nodes`."""
        return self.kind if self.prepaid else "min_nodes"

    def committed(self, start: datetime.datetime, end: datetime.datetime) -> float:
        """Committed GPU-hours between two times."""
        return self.nodes * self.node_gpus * self.period.hours(start, end)

    def by_day(
        self, start: datetime.datetime, end: datetime.datetime
    ) -> Iterator[tuple[datetime.date, float]]:
        """Committed GPU-hours of each day between two times."""
        for midnight in days(start, end):
            first, last = max(start, midnight), min(end, midnight + 24 * HOUR)
            yield midnight.date(), self.committed(first, last)


def pools(spec: StackSpec, on: datetime.date) -> tuple[PoolCapacity, ...]:
    """The pools of a stack that have GPUs, with prices as of a day. Raises UserError without a cluster."""
    return tuple(
        _pool(spec, pool, f"layout.pools[{index}]", gpus, on)
        for index, pool in enumerate(layout(spec).pools)
        if (gpus := node_gpus(spec, pool) // gpu_shares(spec, pool))
    )


def layout(spec: StackSpec) -> ClusterLayout:
    """The layout of a stack with one cluster. Raises UserError for others, which have no ledger."""
    if isinstance(spec.layout, ClusterLayout):
        return spec.layout
    fix = "Choose profile medium or small-cluster; `trainstack runs` shows managed jobs."
    given = f"{spec.profile} on {spec.cloud}"
    rule = "this profile has no cluster with a ledger"
    raise UserError([Problem("profile", given, rule, fix, code="profile-without-queues")])


def _pool(spec: StackSpec, pool: PoolSpec, path: str, gpus: int, on: datetime.date) -> PoolCapacity:
    bought = pool.purchase
    period = (
        TimeSpan(_time(bought.starts), _time(bought.ends))
        if isinstance(bought, CapacityBlock)
        else TimeSpan(None, None)
    )
    return PoolCapacity(
        pool=pool.name,
        path=path,
        flavor=flavor_name(pool.name),
        machine=pool.machine,
        kind=bought.kind,
        reservation=bought.id if isinstance(bought, CapacityBlock | Reserved) else None,
        node_gpus=gpus,
        max_nodes=pool.max_nodes,
        nodes=paid_nodes(pool),
        period=period,
        rates={market: _rate(spec, pool, market, gpus, on) for market in MARKETS},
    )


def _time(moment: str | None) -> datetime.datetime | None:
    """A time of the spec, which rules have checked, in UTC."""
    return None if moment is None else datetime.datetime.fromisoformat(moment).astimezone(datetime.UTC)


def _rate(
    spec: StackSpec, pool: PoolSpec, market: Market, gpus: int, on: datetime.date
) -> GpuHourRate | None:
    found = node_rate(spec, pool, market)
    if found is None:
        return None
    return GpuHourRate(found.usd / gpus, found.price.source, found.price.date, found.price.old(on))
