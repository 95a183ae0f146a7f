"""The report on capacity, and its document."""

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from infra.stackspec.stack import StackSpec
from trainstack.capacity.advice import CapacityAdvice, advice
from trainstack.capacity.classes import PoolCapacity
from trainstack.capacity.demand import PoolDemand
from trainstack.capacity.endings import CommitmentEnd, RunningJob, endings
from trainstack.capacity.forecasts import HoursForecast, TooShort
from trainstack.capacity.history import History
from trainstack.capacity.hours import HourUse, hour_uses
from trainstack.capacity.months import ClassMonth, Commitment, Outlook, class_months, coming, outlooks
from trainstack.capacity.notes import notes, reservation_notes
from trainstack.capacity.reserved import ReservedCapacity
from trainstack.capacity.teams import TeamUse, team_uses
from trainstack.capacity.terms import CommitmentUse, commitment_uses

SCHEMA = "trainstack.capacity/1"
_NOTHING: Mapping[str, ReservedCapacity] = {}


@dataclass(frozen=True)
class Live:
    """Data of the cluster that the ledger does not have."""

    demand: Sequence[PoolDemand] | None
    """None: unknown."""
    resumable: float | None
    """Share of jobs that declare checkpoints; None: unknown."""
    notes: Sequence[str] = ()
    """What the cluster denied."""
    running: Sequence[RunningJob] | None = None
    """Jobs that hold GPUs; None: unknown."""


@dataclass(frozen=True)
class CapacityReport:
    """Capacity of one stack."""

    stack: str
    cloud: str
    region: str
    pools: tuple[PoolCapacity, ...]
    past: History
    commitments: tuple[CommitmentUse, ...]
    endings: tuple[CommitmentEnd, ...]
    use_by_hour: tuple[HourUse, ...]
    """Empty where the ledger counts by day."""
    months: tuple[ClassMonth, ...]
    teams: tuple[TeamUse, ...]
    ahead: tuple[Outlook, ...]
    advice: tuple[CapacityAdvice, ...]
    live: Live | None
    """None without the cluster."""
    notes: tuple[str, ...]


def report(
    spec: StackSpec,
    pools: Sequence[PoolCapacity],
    past: History,
    live: Live | None,
    *,
    shown: Collection[str],
    ahead: int,
    described: Mapping[str, ReservedCapacity] = _NOTHING,
) -> CapacityReport:
    """The report on a stack; `shown`: past months; `ahead`: months to forecast from all past ones."""
    resumable = live.resumable if live else None
    found = [one for month in coming(past, ahead) for one in advice(pools, past, month, resumable)]
    return CapacityReport(
        stack=spec.name,
        cloud=spec.cloud,
        region=spec.region,
        pools=tuple(pools),
        past=past,
        commitments=tuple(commitment_uses(pools, past)),
        endings=tuple(endings(pools, live.running if live else None, past.end)),
        use_by_hour=tuple(hour_uses(pools, past)),
        months=tuple(one for one in class_months(pools, past) if one.month in shown),
        teams=tuple(one for one in team_uses(pools, past) if one.month in shown),
        ahead=tuple(outlooks(pools, past, ahead)),
        advice=tuple(found),
        live=live,
        notes=(
            *past.notes,
            *notes(pools, past),
            *reservation_notes(pools, described),
            *_prices(pools),
            *(live.notes if live else ()),
        ),
    )


def _prices(pools: Sequence[PoolCapacity]) -> Iterator[str]:
    """Prices that are older than their source allows."""
    for pool in pools:
        for market, rate in pool.rates.items():
            if rate and rate.old:
                words = "older than its source allows"
                yield f"the price of {pool.machine} ({market}) is of {rate.date}, {words}"


def document(found: CapacityReport) -> dict[str, Any]:
    """The report in the form of `SCHEMA`; null where unknown."""
    return {
        "stack": found.stack,
        "cloud": found.cloud,
        "region": found.region,
        "ledger_end": found.past.end,
        "pools": [_pool(pool) for pool in found.pools],
        "commitments": [_commitment(one) for one in found.commitments],
        "endings": [_renamed(one, "machine", "class") for one in found.endings],
        "use_by_hour": [_renamed(one, "machine", "class") for one in found.use_by_hour],
        "months": [month(one) for one in found.months],
        "teams": [_renamed(one, "machine", "class") for one in found.teams],
        "forecast": [_outlook(one) for one in found.ahead],
        "queue": None
        if found.live is None or found.live.demand is None
        else [_renamed(one, "flavor", "pool") for one in found.live.demand],
        "resumable_share": None if found.live is None else found.live.resumable,
        "advice": [_renamed(one, "machine", "class") for one in found.advice],
        "notes": found.notes,
    }


def _renamed(
    one: PoolDemand | CapacityAdvice | TeamUse | CommitmentEnd | HourUse, name: str, other: str
) -> dict[str, Any]:
    """A record as an object in which one field has another name."""
    return {other if key == name else key: value for key, value in asdict(one).items()}


def _pool(pool: PoolCapacity) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "class": pool.machine,
        "cloud": pool.cloud,
        "region": pool.region,
        "purchase": pool.kind,
        "reservation": pool.reservation,
        "gpus_per_node": pool.node_gpus,
        "shares_per_gpu": pool.shares,
        "max_nodes": pool.max_nodes,
        "committed_nodes": pool.nodes,
        "start": pool.period.start,
        "end": pool.period.end,
        "usd_per_gpu_hour": {market: rate and asdict(rate) for market, rate in pool.rates.items()},
        "break_even": dict(pool.break_even),
    }


def _commitment(one: CommitmentUse) -> dict[str, Any]:
    return {
        "pool": one.pool,
        "class": one.machine,
        "kind": one.kind,
        "reservation": one.reservation,
        "nodes": one.nodes,
        "start": one.start,
        "end": one.end,
        "committed_hours": one.committed_hours,
        "held_hours": one.held_hours,
        "utilization": one.utilization,
        "unused_hours": one.unused_hours,
        "unused_usd": one.unused_usd,
        "to_come_hours": one.to_come_hours,
        "to_come_usd": one.to_come_usd,
    }


def month(one: ClassMonth) -> dict[str, Any]:
    """A class in a month."""
    return {
        "class": one.machine,
        "month": one.month,
        "from": one.start,
        "until": one.end,
        "commitments": _commitments(one.commitments),
        "committed_hours": one.committed_hours,
        "held_hours": one.held_hours,
        "held_hours_by_purchase": dict(one.held),
        "utilization": one.utilization,
        "coverage": one.coverage,
        "spot_share": one.spot_share,
        "idle_hours": one.idle_hours,
        "idle_usd": one.idle_usd,
        "held_usd": one.usd,
        "usd_per_held_hour": one.usd_per_held_hour,
    }


def _outlook(one: Outlook) -> dict[str, Any]:
    held = one.held
    known: Mapping[str, Any] = (
        {
            "held_hours": held.hours,
            "error_hours": held.error,
            "backtests": held.backtests,
            "tests": [
                {
                    "from": one.first + datetime.timedelta(days=test.day),
                    "forecast_hours": test.forecast,
                    "held_hours": test.actual,
                }
                for test in held.tests
            ],
        }
        if isinstance(held, HoursForecast) and one.first is not None
        else {"held_hours": None, "error_hours": None, "backtests": 0, "tests": []}
    )
    return {
        "class": one.machine,
        "month": one.month,
        "commitments": _commitments(one.commitments),
        "committed_hours": one.committed_hours,
        **known,
        "days": held.days,
        "days_needed": held.needed if isinstance(held, TooShort) else None,
    }


def _commitments(found: Sequence[Commitment]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
