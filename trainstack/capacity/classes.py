"""GPU pools of a stack as capacity: what is committed, for how long, and prices by market."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from infra.cost.rates import Market, gpu_shares, node_gpus, node_rate
from infra.cost.tariff import paid_nodes
from infra.naming import flavor_name
from infra.stackspec.layouts import ClusterLayout, LargeLayout, PoolSpec
from infra.stackspec.purchases import CapacityBlock, Reserved
from infra.stackspec.several.derived import workers
from infra.stackspec.slurm.layout import SlurmLayout
from infra.stackspec.stack import StackSpec
from trainstack.capacity.reserved import CapacitySegment
from trainstack.ledger.periods import HOUR, TimeSpan, days

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
    cloud: str
    region: str
    kind: str
    """Kind of its purchase."""
    reservation: str | None
    node_gpus: int
    """GPUs of a node; a share of a GPU counts as its part, as in the ledger."""
    shares: int
    """Shares of each GPU, that is pods or partitions; 1: whole GPUs."""
    max_nodes: int | None
    """None: a managed service, which has no pool with a size."""
    nodes: int
    """Committed nodes: those of a reservation or block, else the minimum, which is billed as well."""
    period: TimeSpan
    """Of the commitment."""
    rates: Mapping[Market, GpuHourRate | None]
    """By market; None: no source."""
    guarantees: Mapping[str, float]
    """Guaranteed GPUs by team, of teams that have some."""
    segments: tuple[CapacitySegment, ...] = ()
    """Parts of the commitment as the cloud describes them; empty: `nodes` for all of `period`."""

    @property
    def prepaid(self) -> bool:
        """Return whether it is on a reservation."""
        return self.reservation is not None

    @property
    def bought_at(self) -> tuple[str, str, str | None]:
        """Cloud, region and id of its reservation: names of Google Cloud are of a region, too."""
        return self.cloud, self.region, self.reservation

    @property
    def commitment(self) -> str:
        """Kind of the commitment: of the reservation, else `min_nodes`."""
        return self.kind if self.prepaid else "min_nodes"

    @property
    def break_even(self) -> Mapping[Market, float | None]:
        """Break-evens against on demand; None where a price is unknown.

        `block`: share of time that a node must be held; `spot`: share of work that interruptions may repeat.
        """
        listed, block, spot = (self.rates[name] for name in ("on_demand", "block", "spot"))
        return {
            "block": block.usd / listed.usd if block and listed else None,
            "spot": 1 - spot.usd / listed.usd if spot and listed else None,
        }

    def committed(self, start: datetime.datetime, end: datetime.datetime) -> float:
        """Committed GPU-hours between two times."""
        parts = self.segments or (CapacitySegment(self.period, self.nodes),)
        return self.node_gpus * sum(part.nodes * part.span.hours(start, end) for part in parts)

    def by_day(
        self, start: datetime.datetime, end: datetime.datetime
    ) -> Iterator[tuple[datetime.date, float]]:
        """Committed GPU-hours of each day between two times."""
        for midnight in days(start, end):
            first, last = max(start, midnight), min(end, midnight + 24 * HOUR)
            yield midnight.date(), self.committed(first, last)


def cluster_pools(spec: StackSpec, on: datetime.date) -> tuple[PoolCapacity, ...]:
    """The pools of a stack that have GPUs, with prices as of a day; of a manager, those of all its clusters.

    None for a stack without pools.
    """
    return tuple(
        _pool(of, pool, path, gpus, on)
        for of, path, pool in _placed(spec)
        if (gpus := node_gpus(of, pool) // gpu_shares(of, pool))
    )


def _placed(spec: StackSpec) -> Iterator[tuple[StackSpec, str, PoolSpec]]:
    """Each pool with the spec of its cluster, and with its path in the stack file."""
    match spec.layout:
        case ClusterLayout() | SlurmLayout() as layout:
            for index, pool in enumerate(layout.pools):
                yield spec, f"layout.pools[{index}]", pool
        case LargeLayout() as large:
            for number, of in enumerate(workers(spec, large).values()):
                for _, path, pool in _placed(of):
                    yield of, path.replace("layout.", f"layout.clusters[{number}].", 1), pool
        case _:
            return


def _pool(spec: StackSpec, pool: PoolSpec, path: str, gpus: int, on: datetime.date) -> PoolCapacity:
    bought, shares = pool.purchase, gpu_shares(spec, pool)
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
        cloud=spec.cloud,
        region=spec.region,
        kind=bought.kind,
        reservation=bought.id if isinstance(bought, CapacityBlock | Reserved) else None,
        node_gpus=gpus,
        shares=shares,
        max_nodes=pool.max_nodes,
        nodes=paid_nodes(pool),
        period=period,
        rates={market: _rate(spec, pool, market, gpus, on) for market in MARKETS},
        guarantees={
            team.name: gpus_of_team
            for team in spec.teams
            if (gpus_of_team := team.gpus.get(pool.name, 0) + team.shares.get(pool.name, 0) / shares)
        },
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
