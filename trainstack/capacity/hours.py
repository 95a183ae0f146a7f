"""Use of a pool by the hour: peaks that a mean of days or months hides (pure)."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.forecasts import TRAINING_DAYS
from trainstack.capacity.history import History

WEEK_HOURS = 7 * 24
_EPSILON = 1e-9


@dataclass(frozen=True)
class HourUse:
    """Nodes of a pool that jobs held in the last whole days, at most four weeks; each hour as its mean."""

    pool: str
    machine: str
    days: int
    nodes: int
    """Committed nodes."""
    mean: float
    p95: float
    """Nodes that 95 % of the hours do not exceed."""
    peak: float
    peak_at: datetime.datetime
    """Start of the first hour with the most nodes."""
    full: float | None
    """Share of hours in which jobs held all committed nodes; None without a commitment."""
    idle: float
    """Share of hours in which jobs held none."""
    by_hour: tuple[float, ...]
    """Mean nodes of each hour of the week (UTC), from Monday 00:00 on; 0 for hours without a day."""


def hour_uses(pools: Sequence[PoolCapacity], past: History) -> Iterator[HourUse]:
    """Every pool with hours in its last whole days, where the ledger counts by the hour."""
    for pool in pools:
        days = past.full_days(pool.period)[-TRAINING_DAYS:]
        held = past.hourly(pool.flavor, days)
        if held is None or not any(held):
            continue
        nodes = [hours / pool.node_gpus for hours in held]
        top = max(nodes)
        first = datetime.datetime.combine(days[0], datetime.time(), datetime.UTC)
        by_hour: list[list[float]] = [[] for _ in range(WEEK_HOURS)]
        for place, amount in enumerate(nodes):
            by_hour[(first.weekday() * 24 + place) % WEEK_HOURS].append(amount)
        yield HourUse(
            pool=pool.pool,
            machine=pool.machine,
            days=len(days),
            nodes=pool.nodes,
            mean=sum(nodes) / len(nodes),
            p95=sorted(nodes)[-(-len(nodes) * 95 // 100) - 1],
            peak=top,
            peak_at=first + datetime.timedelta(hours=nodes.index(top)),
            full=_share(nodes, pool.nodes) if pool.nodes else None,
            idle=sum(amount <= _EPSILON for amount in nodes) / len(nodes),
            by_hour=tuple(sum(row) / len(row) if row else 0.0 for row in by_hour),
        )


def _share(nodes: Sequence[float], committed: int) -> float:
    return sum(amount >= committed - _EPSILON for amount in nodes) / len(nodes)
