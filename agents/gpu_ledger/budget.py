"""Decide whether a job may start inside its team's monthly budget. Pure; runs in a pod.

The rule is Slurm's safe mode (slurm.conf, AccountingStorageEnforce=safe): a job starts only if it can finish
inside the limit, and is then never stopped for it. In Slurm every job has a time limit; here one without is
admitted while anything is left, and its use beyond that is not reserved.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger.attempts import Shares, month_end
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices, gpu_hours, usd, usd_of
from agents.shared.times import stamp

LIMIT_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"


@dataclass(frozen=True)
class Exemption:
    """Jobs that start regardless of the budget."""

    kind: str
    """`priority`: all of a priority class; `job`: one of that name."""
    name: str
    reason: str
    approved_by: str
    last_day: str
    """The last day (UTC) of its validity, such as 2026-12-31, or never."""


@dataclass(frozen=True)
class GpuBudget:
    """Limits of a team in a calendar month (UTC)."""

    usd: float | None
    gpu_hours: float | None
    stop: bool
    """Whether the team's queues use the check (`check.py`), so that jobs beyond wait; else it only warns."""
    exempt: Sequence[Exemption] = ()

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> "GpuBudget":
        """A budget from the configuration."""
        return cls(**{**row, "exempt": tuple(Exemption(**one) for one in row.get("exempt") or ())})


@dataclass(frozen=True)
class JobRequest:
    """A job that is to start now."""

    job: str
    """Name of the job."""
    priority: str
    shares: Shares
    left_s: int | None
    """Seconds in which Kueue ends it; None without a limit."""


@dataclass(frozen=True)
class LimitUse:
    """Use of one limit in this month: used, and reserved for running jobs with a time limit."""

    unit: str
    """`usd` or `gpu_hours`."""
    limit: float
    used: float
    reserved: float
    unpriced: frozenset[str] = frozenset()
    """Pools without a price, whose hours are not in these dollars."""

    @property
    def left(self) -> float:
        """Neither used nor reserved."""
        return self.limit - self.used - self.reserved

    @property
    def ratio(self) -> float:
        """The used part; of a limit of 0, infinite as soon as anything is used."""
        if self.limit:
            return self.used / self.limit
        return float("inf") if self.used else 1.0


@dataclass(frozen=True)
class BudgetVerdict:
    """Admission of a job within its budget, with the reason for users."""

    starts: bool
    why: str
    exemption: Exemption | None = None


def uses(
    budget: GpuBudget, book: TeamBook, promised: Iterable[JobRequest], prices: Prices, now: int
) -> list[LimitUse]:
    """The use of each limit of a budget, from the month's rows and running attempts.

    `promised`: admitted jobs that do not run yet. Pools that are not in `prices` any more have those of the
    book.
    """
    end, prices = month_end(now), {**(book.terms.get("prices") or {}), **prices}
    rows = [(row.pool, row.resource, float(row.held_s)) for row in book.of_month(stamp(now)[:7])]
    # Open attempts are in the rows until `book.seen`; their reservation is counted from there.
    coming = [(one.shares, one.may_take_s(book.seen, end)) for one in book.open.values()]
    coming += [(one.shares, _within(one.left_s, now, end)) for one in promised]
    reserved = [(*key, float(n * s)) for shares, s in coming if s is not None for key, n in shares.items()]
    found = []
    if budget.gpu_hours is not None:
        hours, coming_hours = (
            sum(gpu_hours(resource, amount) for _, resource, amount in part) for part in (rows, reserved)
        )
        found.append(LimitUse("gpu_hours", budget.gpu_hours, hours, coming_hours))
    if budget.usd is not None:
        used, unknown = usd_of(prices, rows)
        coming_usd, coming_unknown = usd_of(prices, reserved)
        found.append(LimitUse("usd", budget.usd, used, coming_usd, frozenset(unknown | coming_unknown)))
    return found


def judge(
    asked: JobRequest, budget: GpuBudget, found: Sequence[LimitUse], prices: Prices, now: int
) -> BudgetVerdict:
    """Decide whether a job starts. A job without GPUs always does: the book does not count it."""
    if not asked.shares:
        return BudgetVerdict(True, "asks for no GPU")
    short = [words for use in found if (words := _short(asked, use, prices, now))]
    if not short:
        unknown = {pool for pool, resource in asked.shares if usd(prices, pool, resource, 1) is None}
        if unknown and any(use.unit == "usd" for use in found):
            return BudgetVerdict(True, f"its cost is unknown: no price of {', '.join(sorted(unknown))}")
        return BudgetVerdict(True, "fits into the rest of the month's budget")
    if exemption := _exempt(asked, budget.exempt, now):
        until = "" if exemption.last_day == "never" else f" until {exemption.last_day}"
        said = f"over budget, but exempt{until} ({exemption.approved_by}: {exemption.reason})"
        return BudgetVerdict(True, f"{said}: {'; '.join(short)}", exemption)
    fix = (
        f"It starts automatically when it fits, at the latest then; with a shorter limit ({LIMIT_LABEL}) "
        "possibly sooner."
        if asked.left_s is not None
        else f"Give the job a time limit (label {LIMIT_LABEL}): then it is compared with the rest."
    )
    return BudgetVerdict(False, f"{'; '.join(short)}. The month ends {stamp(month_end(now))}. {fix}")


def _short(asked: JobRequest, use: LimitUse, prices: Prices, now: int) -> str:
    """Reason why the job does not fit into one limit; empty when it does."""
    left = _amount(max(0.0, use.left), use.unit)
    rest = f"{left} of {_amount(use.limit, use.unit)} are left for new jobs this month"
    seconds = _within(asked.left_s, now, month_end(now))
    worst = None if seconds is None else _worst(asked.shares, use.unit, seconds, prices)
    if worst is None:
        why = "has no time limit" if seconds is None else "is of a pool without a price"
        return "" if use.left > 0 else f"the job {why}, and {rest}"
    # Tolerance for sums of floats.
    fits = worst <= use.left + 1e-9
    return "" if fits else f"the job may take {_amount(worst, use.unit)} within its time limit, and {rest}"


def _worst(shares: Shares, unit: str, seconds: int, prices: Prices) -> float | None:
    """The highest cost of devices in `seconds`; None where the price of one is unknown."""
    if unit == "gpu_hours":
        return sum(gpu_hours(resource, n * seconds) for (_, resource), n in shares.items())
    costs = [usd(prices, pool, resource, n * seconds) for (pool, resource), n in shares.items()]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _within(left_s: int | None, now: int, end: int) -> int | None:
    """Seconds in this month; use after its end belongs to the next month."""
    return None if left_s is None else max(0, min(left_s, end - now))


def _exempt(asked: JobRequest, rows: Sequence[Exemption], now: int) -> Exemption | None:
    today = datetime.datetime.fromtimestamp(now, datetime.UTC).date().isoformat()
    for row in rows:
        named = {"priority": asked.priority, "job": asked.job}[row.kind] == row.name
        if named and (row.last_day == "never" or today <= row.last_day):
            return row
    return None


def _amount(value: float, unit: str) -> str:
    return f"${value:,.2f}" if unit == "usd" else f"{value:,.1f} GPU-hours"
