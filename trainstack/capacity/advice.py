"""Advice to buy, let go or move capacity, each with its break-even (pure).

A commitment is paid for all of its hours, nodes on demand for held hours alone, so it is cheaper if

    utilization > break-even = committed price per GPU-hour / price of the alternative per GPU-hour

Source: Cloudability, "Measuring Reserved Instance profitability with the break even point" (effective hourly
rate under reservation / effective hourly rate on demand; blog.cloudability.com, read 2026-11-29).

The number of nodes follows from the same rule for each node: node n is worth its commitment if the share of
time in which more than n - 1 nodes are held is above the break-even. Where the ledger counts by the hour
(Slurm, managed jobs), shares are of hours. Books of a cluster count by day, so shares are means of days: use
that is concentrated in some hours of a day needs more nodes at once than they say.

Spot nodes cost less, and interruptions repeat work. With a share w of repeated work, an hour of work costs
the spot price / (1 - w), which is less than on demand if

    w < break-even = 1 - spot price / on-demand price
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from trainstack.capacity.classes import GpuHourRate, PoolCapacity
from trainstack.capacity.forecasts import TRAINING_DAYS, HoursForecast, TooShort
from trainstack.capacity.history import History
from trainstack.capacity.months import daily, forecast_of
from trainstack.ledger.periods import bounds

Action = Literal["buy", "let go", "move to spot", "keep", "none"]


@dataclass(frozen=True)
class Range:
    """A share at the forecast, and at the ends of its error."""

    low: float
    expected: float
    high: float

    def __str__(self) -> str:
        return f"{self.expected:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class CapacityAdvice:
    """A recommendation on one pool for one month."""

    action: Action
    pool: str
    path: str
    """Of the value in the stack file that it is about."""
    machine: str
    month: str
    nodes: int
    """Nodes to buy, let go or move; 0: none."""
    break_even: float | None
    forecast: Range | None
    usd: float | None
    """US dollars that it saves in the month, at the forecast; None where unknown."""
    why: str


def advice(
    pools: Sequence[PoolCapacity], past: History, month: str, resumable: float | None
) -> Iterator[CapacityAdvice]:
    """Advice on every pool that has commitments or held hours.

    `resumable`: the share of GPU-hours of jobs that declare checkpoints; None: unknown.
    """
    for pool in pools:
        if not pool.nodes and not any(past.hours(pool.flavor, known) for known in past.months):
            continue
        made = _Case(pool, month)
        # Outside of a block there are no nodes, so hours of these days say nothing about its use.
        found = forecast_of([pool], past, month, pool.period)
        if isinstance(found, TooShort):
            yield made.none(str(found))
            continue
        days = past.full_days(pool.period)[-TRAINING_DAYS:]
        start, end = bounds(month)
        by_hour = past.hourly(pool.flavor, days)
        held, hours = (daily([pool], past, days), 24) if by_hour is None else (by_hour, 1)
        use = _Use(held, found, pool.node_gpus, (end - start).days, hours)
        bought = _block(made, use) if pool.kind != "block" else None
        buys = bought is not None and bought.action == "buy"
        if pool.nodes:
            known = _committed(made, use)
            # Nodes that a block replaces need no second line that keeps them.
            if not (buys and bought and known.action == "keep" and bought.nodes >= pool.nodes):
                yield known
        if bought and (buys or not pool.prepaid):
            yield bought
        if pool.kind == "on_demand":
            yield _spot(made, use, resumable)


class _Use:
    """Use of nodes in the month: the last four weeks, scaled to the forecast and to the ends of its error."""

    def __init__(self, held: Sequence[float], found: HoursForecast, gpus: int, days: int, hours: int) -> None:
        """Take `held` hours of periods of so many `hours`: days, or single hours where these are known."""
        self.found, self._gpus, self.days, self._hours = found, gpus, days, hours
        self._mean = sum(held) / len(held)
        self._held = held

    def _at(self, hours: float) -> list[float]:
        """Nodes of each day or hour, as a mean over it, where the month has so many GPU-hours."""
        each = hours / (self.days * 24 / self._hours)
        # Without use in the last weeks, that of the error is spread evenly.
        scaled = [one * each / self._mean for one in self._held] if self._mean else [each]
        return [one / (self._hours * self._gpus) for one in scaled]

    def share(self, first: int, nodes: int) -> Range:
        """The share of time in which jobs hold `nodes` nodes, beyond the `first` ones."""
        return Range(*(self._share(self._at(hours), first, nodes) for hours in self.found.ends))

    @staticmethod
    def _share(days: Sequence[float], first: int, nodes: int) -> float:
        return sum(min(max(0.0, one - first), nodes) for one in days) / len(days) / nodes

    def most(self) -> int:
        """Nodes of the day or hour with the most use, at the upper end of the forecast."""
        return math.ceil(max(self._at(self.found.high)) - 1e-9)

    def hours(self, nodes: int) -> float:
        """GPU-hours of nodes in the month."""
        return 24.0 * self.days * nodes * self._gpus


@dataclass(frozen=True)
class _Case:
    pool: PoolCapacity
    month: str

    def make(
        self,
        action: Action,
        why: str,
        *,
        nodes: int = 0,
        path: str = "purchase",
        break_even: float | None = None,
        forecast: Range | None = None,
        usd: float | None = None,
    ) -> CapacityAdvice:
        at = f"{self.pool.path}.{path}"
        pool = self.pool
        return CapacityAdvice(
            action, pool.pool, at, pool.machine, self.month, nodes, break_even, forecast, usd, why
        )

    def none(
        self, why: str, *, break_even: float | None = None, forecast: Range | None = None
    ) -> CapacityAdvice:
        return self.make("none", why, break_even=break_even, forecast=forecast)

    def rate(self, market: Literal["own", "on_demand", "spot", "block"]) -> GpuHourRate | None:
        return self.pool.rates[market]


def _committed(made: _Case, use: _Use) -> CapacityAdvice:
    """Keep or let go committed nodes; the alternative to a reservation is on demand."""
    pool, own = made.pool, made.rate("own")
    # Without min_nodes, the same nodes are bought by the hour.
    listed = made.rate("on_demand") if pool.prepaid else own
    path = "purchase" if pool.prepaid else "min_nodes"
    all_nodes = use.share(0, pool.nodes)
    if own is None or listed is None:
        missing = "of its purchase" if own is None else "on demand"
        return made.none(f"the price {missing} of {pool.machine} is unknown", forecast=all_nodes)
    level = own.usd / listed.usd
    if level >= 1:
        # It never costs less than on demand: it secures capacity, so nodes stay that any day may need.
        needed = min(pool.nodes, use.most())
    else:
        needed = sum(use.share(n, 1).high > level for n in range(pool.nodes))
    if needed < pool.nodes:
        gone = pool.nodes - needed
        rest = use.share(needed, gone)
        saved = use.hours(gone) * (own.usd - rest.expected * listed.usd)
        when = f" at its end on {pool.period.end:%Y-%m-%d}" if pool.period.end else ""
        return made.make(
            "let go",
            f"{gone} of {pool.nodes} nodes{when}",
            nodes=gone,
            path=path,
            break_even=level,
            forecast=rest,
            usd=saved,
        )
    last = use.share(pool.nodes - 1, 1)
    if level >= 1:
        idle = use.hours(pool.nodes) * (1 - all_nodes.expected) * own.usd
        why = f"all nodes are needed on some day; idle hours cost ${idle:,.0f}, for capacity that is there"
        return made.make("keep", why, path=path, break_even=level, forecast=all_nodes)
    if last.low > level:
        saved = use.hours(pool.nodes) * (all_nodes.expected * listed.usd - own.usd)
        why = f"{pool.nodes} nodes, also after its end" if pool.period.end else f"{pool.nodes} nodes"
        return made.make("keep", why, path=path, break_even=level, forecast=all_nodes, usd=saved)
    return made.none("the error interval contains the break-even", break_even=level, forecast=last)


def _block(made: _Case, use: _Use) -> CapacityAdvice:
    """Buy a block for nodes that are bought by the hour, or paid all the time at a higher price.

    The alternative for a node is the price by the hour; nodes that are committed now are paid in full until
    then, so what a block saves is the difference of two bills.
    """
    pool, own, block = made.pool, made.rate("own"), made.rate("block")
    hourly = made.rate("on_demand") if pool.prepaid else own
    if own is None or hourly is None or block is None:
        missing = "as a block" if block is None else f"as {pool.kind}" if own is None else "on demand"
        return made.none(f"the price of {pool.machine} {missing} is unknown")
    level = block.usd / hourly.usd
    if level >= 1:
        why = f"{pool.kind} at ${own.usd:.2f} a GPU-hour costs no more than a block at ${block.usd:.2f}"
        return made.make("keep", why, break_even=level, forecast=use.share(0, max(1, pool.nodes)))
    worth = sum(use.share(n, 1).expected > level for n in range(pool.max_nodes or 0))
    found = use.share(0, max(1, worth))
    if worth and found.low > level:
        paid, rest = min(worth, pool.nodes), max(0, worth - pool.nodes)
        bill = use.hours(paid) * own.usd
        if rest:
            bill += use.hours(rest) * use.share(pool.nodes, rest).expected * own.usd
        why = f"{worth} x {pool.machine} as a block at ${block.usd:.2f} a GPU-hour"
        if paid:
            why += f", {paid} of them instead of {pool.commitment} at ${own.usd:.2f}"
        saved = bill - use.hours(worth) * block.usd
        return made.make("buy", why, nodes=worth, break_even=level, forecast=found, usd=saved)
    if found.high < level:
        return made.make("keep", f"bought as {pool.kind}", break_even=level, forecast=found)
    return made.none("the error interval contains the break-even", break_even=level, forecast=found)


def _spot(made: _Case, use: _Use, resumable: float | None) -> CapacityAdvice:
    """Move jobs that resume from on demand to spot."""
    listed, spot = made.rate("on_demand"), made.rate("spot")
    if listed is None or spot is None:
        missing = "on demand" if listed is None else "of spot"
        return made.none(f"the price {missing} of {made.pool.machine} is unknown")
    level = 1 - spot.usd / listed.usd
    if level <= 0:
        return made.make("keep", "spot nodes do not cost less")
    if resumable is None:
        return made.none("the share of jobs that resume is unknown without the cluster", break_even=level)
    if not resumable:
        return made.none("no job of the last week declares checkpoints", break_even=level)
    if not use.found.low:
        return made.none("the error interval contains a month without use", break_even=level)
    saved = use.found.hours * resumable * (listed.usd - spot.usd)
    why = (
        f"jobs with {resumable:.0%} of the GPU-hours declare checkpoints; cheaper while interruptions repeat "
        f"less than {level:.0%} of the work"
    )
    return made.make("move to spot", why, break_even=level, usd=saved)


def line(one: CapacityAdvice) -> str:
    """The advice in one line."""
    title = "no advice" if one.action == "none" else one.action
    parts = [f"{one.pool}: {title}: {one.why}"]
    if one.break_even is not None and one.action != "move to spot":
        parts.append(f"break-even at {one.break_even:.0%} use")
    if one.forecast is not None:
        parts.append(f"forecast {one.forecast} of these nodes in {one.month}")
    if one.usd is not None:
        parts.append(f"saves ${one.usd:,.0f} in {one.month}")
    return "; ".join(parts)
