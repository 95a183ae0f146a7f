"""The ledger as rows of a table, as JSON, as CSV, and as rows of FOCUS 1.2."""

import csv
import datetime
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agents.shared.times import stamp
from trainstack.ledger.books import Line, Month

# Columns of FOCUS 1.2 (focus.finops.org, read 2026-11-22) that a queue can fill. BilledCost is 0, as no
# invoice has these rows: sums with rows of the cloud would count nodes twice.
_FOCUS = (
    "BilledCost", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
    "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity",
    "ConsumedUnit", "EffectiveCost", "ResourceName", "ResourceType", "ServiceCategory", "SubAccountId",
    "SubAccountName", "Tags", "x_RunningHours", "x_UsedHours", "x_IdleHours", "x_UnknownHours",
)  # fmt: skip
_OF_ROW = ("project", "pool", "resource", "day")
_PLAIN = (
    "team", "project", "pool", "resource", "day", "held_hours", "running_hours", "used_hours",
    "idle_hours", "unknown_hours", "usd",
)  # fmt: skip


HEAD = ("team", "project", "pool", "held h", "running h", "used h", "idle h", "unknown h", "USD")


def rows(months: Iterable[Month]) -> list[tuple[str, ...]]:
    """Hours and dollars by team, project and pool, in the columns of `HEAD`."""
    found: list[tuple[str, ...]] = []
    for one in months:
        of_pool: dict[tuple[str, str], list[Line]] = {}
        for line in one.lines:
            of_pool.setdefault((line.row.project, line.row.pool), []).append(line)
        for (project, pool), lines in sorted(of_pool.items()):
            names = ("held_hours", "running_hours", "used_hours", "idle_hours", "unknown_hours")
            hours = [_sum(getattr(line, name) for line in lines) for name in names]
            money = "unknown" if pool in one.unpriced else _sum(line.usd for line in lines)
            found.append((one.team, project, pool, *hours, money))
    return found


def _sum(amounts: Iterable[float | None]) -> str:
    """The sum of known amounts; a dash without any."""
    known = [amount for amount in amounts if amount is not None]
    return f"{sum(known):,.2f}" if known else "-"


def notes(months: Iterable[Month], month: str) -> list[str]:
    """Budgets of teams, and what the rows do not contain."""
    return [note for one in months for note in _notes(one, month)]


def _notes(one: Month, month: str) -> Iterator[str]:
    budget = one.budget or {}
    for unit, used, name in (("usd", one.usd, "USD"), ("gpu_hours", one.held_hours, "GPU-hours")):
        limit = budget.get(unit)
        if limit is not None:
            share = f", {used / limit:.0%}" if limit else ""
            action = "jobs that do not fit wait" if budget.get("stop") else "only notifies"
            yield f"{one.team}: {used:,.2f} of {limit:,.2f} {name} of {month}{share}; {action}"
    if one.unpriced:
        yield f"{one.team}: no price of pools {', '.join(one.unpriced)}; sums of dollars exclude them"
    if one.uncertain_hours:
        yield f"{one.team}: up to {one.uncertain_hours:,.2f} more device-hours of jobs without a recorded end"
    yield from (f"{one.team}: {note}" for note in one.notes)


def documents(months: Iterable[Month]) -> list[dict[str, Any]]:
    """Every line of each team, with its budget and what is uncertain, as JSON."""
    return [
        {
            "team": one.team,
            "namespace": one.namespace,
            "begun": stamp(one.begun),
            "seen": stamp(one.seen),
            "budget": one.budget,
            "uncertain_hours": one.uncertain_hours,
            "unpriced_pools": one.unpriced,
            "notes": one.notes,
            "lines": [_plain(line) for line in one.lines],
            "hourly": None
            if one.hourly is None
            else [
                {"pool": pool, "day": day, "held_hours": list(hours)}
                for (pool, day), hours in one.hourly.items()
            ],
        }
        for one in months
    ]


def as_csv(months: Sequence[Month], month: str) -> str:
    """One line per day, project, pool and resource; no dollars where no price is known."""
    del month
    return _csv(_PLAIN, (_plain(line) for one in months for line in one.lines))


def focus(months: Sequence[Month], month: str) -> str:
    """Rows of FOCUS 1.2, with hours of the queue in columns that begin with `x_`."""
    start = datetime.date.fromisoformat(f"{month}-01")
    end = (start + datetime.timedelta(days=32)).replace(day=1)
    period = {"BillingPeriodStart": _midnight(start), "BillingPeriodEnd": _midnight(end)}
    return _csv(_FOCUS, ({**period, **_focus(line)} for one in months for line in one.lines))


CSV_FORMS: Mapping[str, Callable[[Sequence[Month], str], str]] = {"csv": as_csv, "focus": focus}


def _focus(line: Line) -> dict[str, Any]:
    day = datetime.date.fromisoformat(line.row.day)
    return {
        "BilledCost": 0,
        "BillingCurrency": "USD",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{line.row.resource} of pool {line.row.pool}, held by jobs of the queue",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": _midnight(day),
        "ChargePeriodEnd": _midnight(day + datetime.timedelta(days=1)),
        "ConsumedQuantity": line.held_hours,
        "ConsumedUnit": "Hours",
        "EffectiveCost": "" if line.usd is None else line.usd,
        "ResourceName": line.row.pool,
        "ResourceType": line.row.resource,
        "ServiceCategory": "Compute",
        "SubAccountId": line.namespace,
        "SubAccountName": line.team,
        "Tags": json.dumps({"trainstack.dev/project": line.row.project}),
        "x_RunningHours": line.running_hours,
        "x_UsedHours": "" if line.used_hours is None else line.used_hours,
        "x_IdleHours": "" if line.idle_hours is None else line.idle_hours,
        "x_UnknownHours": line.unknown_hours,
    }


def _plain(line: Line) -> dict[str, Any]:
    return {name: getattr(line.row if name in _OF_ROW else line, name) for name in _PLAIN}


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def _midnight(day: datetime.date) -> str:
    return f"{day}T00:00:00Z"
