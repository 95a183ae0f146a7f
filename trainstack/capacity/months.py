"""Committed, held and idle GPU-hours of each class and month (pure).

Terms are those of the clouds' own reports: *utilization* is the share of committed hours that jobs held,
*coverage* the share of held hours on commitments (AWS Cost Management, reservation utilization and coverage
reports; Google Cloud, CUD analysis). *Idle* hours are committed ones that no job held (OpenCost: asset idle
cost, the cost of nodes less the cost of what is allocated on them).
"""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.forecasts import HoursForecast, TooShort, forecast
from trainstack.capacity.history import History
from trainstack.ledger.periods import ALWAYS, TimeSpan, bounds, following

UNKNOWN = "(pool not in the spec)"
"""Class of hours of pools that the stack file no longer has."""


@dataclass(frozen=True)
class Commitment:
    """Committed hours of one pool in a month."""

    pool: str
    kind: str
    """`reserved`, `block` or `min_nodes`."""
    hours: float
    start: datetime.datetime | None
    end: datetime.datetime | None


@dataclass(frozen=True)
class ClassMonth:
    """A class in a month that the ledger covers. Hours are GPU-hours."""

    machine: str
    month: str
    start: datetime.datetime
    end: datetime.datetime
    """The covered part of the month."""
    commitments: tuple[Commitment, ...]
    held: Mapping[str, float]
    """By kind of the pool's purchase."""
    held_committed: float
    """Held hours on commitments."""
    idle_usd: float | None
    """None without a price."""
    usd: float | None
    """Of held hours, from the ledger; None without a price."""

    @property
    def committed_hours(self) -> float:
        """Of all commitments."""
        return sum(one.hours for one in self.commitments)

    @property
    def held_hours(self) -> float:
        """Of all kinds."""
        return sum(self.held.values())

    @property
    def idle_hours(self) -> float:
        """Committed hours that no job held."""
        return self.committed_hours - self.held_committed

    @property
    def utilization(self) -> float | None:
        """None without commitments."""
        return self.held_committed / self.committed_hours if self.committed_hours else None

    @property
    def coverage(self) -> float | None:
        """None without held hours."""
        return self.held_committed / self.held_hours if self.held_hours else None

    @property
    def spot_share(self) -> float | None:
        """Held hours on spot nodes; None without held hours."""
        return self.held.get("spot", 0.0) / self.held_hours if self.held_hours else None

    @property
    def usd_per_held_hour(self) -> float | None:
        """Held and idle dollars per held hour; None where a price is unknown, or without held hours."""
        if not self.held_hours or self.usd is None or self.idle_usd is None:
            return None
        return (self.usd + self.idle_usd) / self.held_hours


@dataclass(frozen=True)
class Outlook:
    """A class in a month to come."""

    machine: str
    month: str
    commitments: tuple[Commitment, ...]
    held: HoursForecast | TooShort
    first: datetime.date | None
    """First day of the history that the forecast is made from; None without any."""

    @property
    def committed_hours(self) -> float:
        """Of all commitments."""
        return sum(one.hours for one in self.commitments)


def by_class(pools: Sequence[PoolCapacity]) -> Mapping[str, tuple[PoolCapacity, ...]]:
    """The pools of each machine type, in the order of the stack file."""
    names = dict.fromkeys(pool.machine for pool in pools)
    return {name: tuple(pool for pool in pools if pool.machine == name) for name in names}


def class_months(pools: Sequence[PoolCapacity], past: History) -> Iterator[ClassMonth]:
    """Every class in every month of the ledger; hours of pools that the spec does not have come last."""
    for month, (start, end) in past.months.items():
        for machine, members in by_class(pools).items():
            yield _class_month(machine, members, past, month)
        known = {pool.flavor for pool in pools}
        if others := sorted({name for name, at in past.usd if at == month} - known):
            held = sum(past.hours(name, month) for name in others)
            usd = _sum(past.usd.get((name, month), 0.0) for name in others)
            yield ClassMonth(UNKNOWN, month, start, end, (), {"unknown": held}, 0.0, 0.0, usd)


def _class_month(machine: str, pools: Sequence[PoolCapacity], past: History, month: str) -> ClassMonth:
    start, end = past.months[month]
    held: dict[str, float] = {}
    on_commitments, idle_usd = 0.0, list[float | None]()
    for pool in pools:
        held[pool.kind] = held.get(pool.kind, 0.0) + past.hours(pool.flavor, month)
        idle = 0.0
        for _, committed, on in held_on(pool, past, start, end):
            on_commitments, idle = on_commitments + on, idle + committed - on
        rate = pool.rates["own"]
        idle_usd.append(idle * rate.usd if rate else None if idle else 0.0)
    return ClassMonth(
        machine=machine,
        month=month,
        start=start,
        end=end,
        commitments=tuple(_commitments(pools, start, end)),
        held=held,
        held_committed=on_commitments,
        idle_usd=_sum(idle_usd),
        usd=_sum(past.usd.get((pool.flavor, month), 0.0) for pool in pools),
    )


def held_on(
    pool: PoolCapacity, past: History, start: datetime.datetime, end: datetime.datetime
) -> Iterator[tuple[datetime.date, float, float]]:
    """Each day between two times, with the committed hours of a pool and those of them that jobs held."""
    for day, committed in pool.by_day(start, end):
        yield day, committed, min(committed, past.held.get((pool.flavor, day), 0.0))


def _commitments(
    pools: Sequence[PoolCapacity], start: datetime.datetime, end: datetime.datetime
) -> Iterator[Commitment]:
    for pool in pools:
        if hours := pool.committed(start, end):
            yield Commitment(pool.pool, pool.commitment, hours, pool.period.start, pool.period.end)


def outlooks(pools: Sequence[PoolCapacity], past: History, ahead: int) -> Iterator[Outlook]:
    """Every class in each of the next `ahead` months."""
    for month in coming(past, ahead):
        for machine, members in by_class(pools).items():
            found = forecast_of(members, past, month)
            committed = tuple(_commitments(members, *bounds(month)))
            yield Outlook(machine, month, committed, found, next(iter(past.full_days()), None))


def coming(past: History, ahead: int) -> list[str]:
    """The months after the one in which the ledger ends."""
    last = max(past.months)
    return [following(last, count) for count in range(1, ahead + 1)]


def forecast_of(
    pools: Sequence[PoolCapacity], past: History, month: str, within: TimeSpan = ALWAYS
) -> HoursForecast | TooShort:
    """Held hours of pools in a month, from the whole days of the ledger in a period."""
    known = past.full_days(within)
    start, end = bounds(month)
    lead = (start.date() - known[-1]).days - 1 if known else 0
    return forecast(daily(pools, past, known), lead, (end - start).days)


def daily(pools: Sequence[PoolCapacity], past: History, on: Sequence[datetime.date]) -> list[float]:
    """Held hours of pools on each of the days."""
    return [sum(past.held.get((pool.flavor, day), 0.0) for pool in pools) for day in on]


def _sum(amounts: Sequence[float | None] | Iterator[float | None]) -> float | None:
    """The sum; None where one is unknown."""
    total = 0.0
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
