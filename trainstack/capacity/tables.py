"""The report on capacity as tables, lines and rows of a spreadsheet."""

import csv
import datetime
import io

from infra.cost.rates import Market
from trainstack.capacity.advice import line
from trainstack.capacity.forecasts import HoursForecast
from trainstack.capacity.report import CapacityReport, month
from trainstack.ledger.periods import DAY, bounds

PAST = (
    "class", "month", "committed h", "held h", "utilization", "coverage", "spot", "idle h", "idle USD",
    "USD/held h",
)  # fmt: skip
TERMS = (
    "pool", "class", "kind", "until", "committed h", "held h", "utilization", "unused h", "unused USD",
    "to come USD",
)  # fmt: skip
HOURS = (
    "pool",
    "class",
    "committed",
    "mean",
    "95 % of hours",
    "peak",
    "first at (UTC)",
    "all held",
    "none held",
)
TEAMS = ("class", "month", "team", "guaranteed h", "held h", "share", "USD")
PRICES = ("class", "region", "on demand", "spot", "block", "block pays above", "spot pays below", "prices of")
AHEAD = ("class", "month", "committed h", "forecast h", "error h", "backtests", "last backtest h")
QUEUE = ("pool", "class", "jobs", "GPUs", "GPU-hours", "no limit", "p50 min", "p95 min", "waits")
_MARKETS: tuple[Market, ...] = ("on_demand", "spot", "block")
_NO_ROWS = ("commitments", "held_hours_by_purchase")
"""Parts of a month with several values."""


def past_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `PAST`."""
    return [
        (
            one.machine,
            one.month + ("" if one.end == bounds(one.month)[1] else " to date"),
            _hours(one.committed_hours),
            _hours(one.held_hours),
            _share(one.utilization),
            _share(one.coverage),
            _share(one.spot_share),
            _hours(one.idle_hours),
            _usd(one.idle_usd),
            _usd(one.usd_per_held_hour) if one.held_hours else "-",
        )
        for one in found.months
    ]


def term_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `TERMS`: each commitment in the part of its term that the ledger covers."""
    return [
        (
            one.pool,
            one.machine,
            one.kind,
            "-" if one.end is None else _time(one.end),
            _hours(one.committed_hours),
            _hours(one.held_hours),
            _share(one.utilization),
            _hours(one.unused_hours),
            _usd(one.unused_usd),
            "-" if one.end is None else _usd(one.to_come_usd),
        )
        for one in found.commitments
    ]


def ending_lines(found: CapacityReport) -> list[str]:
    """Ends of commitments that are to come, each with the jobs that may still run then."""
    lines = []
    for one in found.endings:
        left = (one.end - found.past.end) / DAY
        head = f"{one.pool}: {one.nodes} x {one.machine} end on {_time(one.end)} UTC, in {left:,.1f} days"
        if one.stops is None:
            lines.append(f"  {head}; machines run on, and are billed on demand")
            continue
        lines.append(f"  {head}; jobs are stopped from {_time(one.stops)} UTC on")
        for job in one.over or ():
            until = "has no time limit" if job.until is None else f"may run until {_time(job.until)} UTC"
            saves = {True: "", False: ", declares no checkpoints", None: ", checkpoints unknown"}
            lines.append(f"    {job.name} ({job.team}, {job.gpus:,.4g} GPUs) {until}{saves[job.checkpoints]}")
    return ["", "ends", *lines] if lines else []


def hour_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `HOURS`: nodes by the hour in the last four weeks."""
    return [
        (
            one.pool,
            one.machine,
            str(one.nodes),
            f"{one.mean:,.1f}",
            f"{one.p95:,.1f}",
            f"{one.peak:,.1f}",
            f"{one.peak_at:%a %Y-%m-%d %H:%M}",
            _share(one.full),
            _share(one.idle),
        )
        for one in found.use_by_hour
    ]


def team_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `TEAMS`, of the last month."""
    last = max(found.past.months)
    return [
        (
            one.machine,
            one.month,
            one.team,
            _hours(one.guaranteed_hours),
            _hours(one.held_hours),
            _share(one.share),
            _usd(one.held_usd),
        )
        for one in found.teams
        if one.month == last
    ]


def price_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `PRICES`: US dollars per GPU-hour by market, and break-evens against on demand."""
    rows: dict[tuple[str, str], tuple[str, ...]] = {}
    for pool in found.pools:
        known = [rate for rate in pool.rates.values() if rate]
        block, spot = pool.break_even["block"], pool.break_even["spot"]
        rows[pool.machine, pool.region] = (
            pool.machine,
            pool.region,
            *(_usd(rate.usd if rate else None) for rate in map(pool.rates.__getitem__, _MARKETS)),
            "unknown" if block is None else f"{block:.0%} use",
            "unknown" if spot is None else f"{spot:.0%} repeated",
            str(min(rate.date for rate in known)) if known else "-",
        )
    return list(rows.values())


def ahead_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `AHEAD`."""
    rows: list[tuple[str, ...]] = []
    for one in found.ahead:
        held = one.held
        cells = (
            (_hours(held.hours), f"+- {_hours(held.error)}", str(held.backtests), _tested(held))
            if isinstance(held, HoursForecast)
            else (f"{held.days} of {held.needed} days", "-", "-", "-")
        )
        rows.append((one.machine, one.month, _hours(one.committed_hours), *cells))
    return rows


def _tested(held: HoursForecast) -> str:
    """The latest backtest: what it forecast, and what jobs held."""
    return f"{_hours(held.tests[0].forecast)}, was {_hours(held.tests[0].actual)}" if held.tests else "-"


def queue_rows(found: CapacityReport) -> list[tuple[str, ...]]:
    """Rows of `QUEUE`."""
    machines = {pool.flavor: pool.machine for pool in found.pools}
    return [
        (
            one.flavor or "unknown",
            machines.get(one.flavor, "unknown"),
            str(one.jobs),
            f"{one.gpus:,.4g}",
            _hours(one.gpu_hours),
            str(one.without_limit),
            "-" if one.p50_minutes is None else f"{one.p50_minutes:,.0f}",
            "-" if one.p95_minutes is None else f"{one.p95_minutes:,.0f}",
            str(one.waits),
        )
        for one in ((found.live.demand if found.live else None) or ())
    ]


def commitments(found: CapacityReport) -> list[str]:
    """Each commitment with its nodes and its times."""
    lines = []
    for pool in found.pools:
        if pool.nodes:
            start, end = map(_time, (pool.period.start, pool.period.end))
            days = (pool.period.end - found.past.end) / DAY if pool.period.end else 0.0
            left = f" (in {days:,.0f} days)" if days > 0 else ""
            fixed = pool.prepaid and (pool.kind != "reserved" or pool.period.end)
            times = f", start {start}, end {end}{left}" if fixed else ""
            named = f" {pool.reservation}" if pool.reservation else ""
            lines.append(f"{pool.pool}: {pool.commitment}{named}, {pool.nodes} x {pool.machine}{times}")
    return lines


def advice_lines(found: CapacityReport) -> list[str]:
    """Each advice in one line."""
    return [line(one) for one in found.advice]


def as_csv(found: CapacityReport) -> str:
    """One line per month and class, with the values of the document; empty where unknown."""
    lines = [
        {name: value for name, value in month(one).items() if name not in _NO_ROWS} for one in found.months
    ]
    text = io.StringIO()
    columns = ["month", *(name for name in lines[0] if name != "month")]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().rstrip("\n")


def _time(at: datetime.datetime | None) -> str:
    return "unknown" if at is None else f"{at:%Y-%m-%d %H:%M}"


def _hours(amount: float) -> str:
    return f"{amount:,.0f}"


def _share(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:.0%}"


def _usd(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:,.2f}"
