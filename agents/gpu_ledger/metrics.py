"""Metrics of the ledger in the text format of Prometheus. Pure; runs in a pod.

Counters begin at 0 with the process, as those of any exporter: the book is authoritative, and `rate` and
`increase` cover its growth. They never decrease, also where the book changes.
"""

from collections.abc import Iterable, Iterator

from agents.gpu_ledger.budget import LimitUse
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices, gpu_hours, usd
from agents.shared import exposition
from agents.shared.exposition import PrometheusMetric

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]

_HELP = {
    "trainstack_gpu_hours_total": (
        "counter",
        "GPU-hours (a share counts as its part): held (admitted), and of these running (pods ready).",
    ),
    "trainstack_gpu_use_hours_total": (
        "counter",
        "Held device-hours with a figure: used (the device worked), idle (it did not).",
    ),
    "trainstack_gpu_unknown_hours": (
        "gauge",
        "Held device-hours of this month without a figure yet of what the device did.",
    ),
    "trainstack_ledger_measured_timestamp_seconds": (
        "gauge",
        "Until when figures were queried; it stands still while Prometheus is unavailable.",
    ),
    "trainstack_gpu_cost_usd_total": (
        "counter",
        "Held device-hours in US dollars, where the pool has a price.",
    ),
    "trainstack_ledger_unpriced_hours_total": ("counter", "Held device-hours of pools without a price."),
    "trainstack_ledger_uncertain_hours_total": (
        "counter",
        "Device-hours that were possibly held: at most these.",
    ),
    "trainstack_budget_usd": ("gauge", "The team's budget of this month in US dollars."),
    "trainstack_budget_gpu_hours": ("gauge", "The team's budget of this month in GPU-hours."),
    "trainstack_budget_used_ratio": ("gauge", "Used part of the month's budget, by its unit."),
    "trainstack_budget_reserved_ratio": (
        "gauge",
        "What running jobs may still take within their time limits.",
    ),
    "trainstack_budget_waiting_workloads": (
        "gauge",
        "Workloads that wait because they do not fit the budget.",
    ),
    "trainstack_ledger_seen_timestamp_seconds": (
        "gauge",
        "Until when the book is complete, by the API server.",
    ),
    "trainstack_ledger_written_timestamp_seconds": (
        "gauge",
        "When the book was last stored, by this pod's clock.",
    ),
    "trainstack_ledger_book_bytes": ("gauge", "Size of the book; a ConfigMap holds 1 MiB."),
    "trainstack_ledger_write_failures_total": (
        "counter",
        "Failed writes and reads of the book, by reason; its hours are kept in memory meanwhile.",
    ),
}


class Counters:
    """Growth of the books since this process began."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._last: dict[tuple[str, Labels], float] = {}
        self._values: dict[tuple[str, Labels], float] = {}

    def begin(self, team: str, book: TeamBook) -> None:
        """Count from the current book; earlier counts are not added again."""
        self._last = {**self._sums(team, book), **self._last}

    def archived(self, team: str, book: TeamBook) -> None:
        """Count from the current book, whose past days were moved to archives after a call of `add`."""
        self._last |= {key: 0.0 for key in self._last if ("team", team) in key[1]}
        self._last |= self._sums(team, book)

    def add(self, team: str, book: TeamBook) -> None:
        """Count the growth since the last call."""
        for key, value in self._sums(team, book).items():
            more = max(0.0, value - self._last.get(key, 0.0))
            self._values[key] = self._values.get(key, 0.0) + more
            self._last[key] = value

    def samples(self) -> Iterator[Sample]:
        """Name, labels and value of every series."""
        for (name, labels), value in self._values.items():
            yield name, labels, value

    def _sums(self, team: str, book: TeamBook) -> dict[tuple[str, Labels], float]:
        found: dict[tuple[str, Labels], float] = {}

        def count(name: str, value: float, **labels: str) -> None:
            key = (name, tuple(labels.items()))
            found[key] = found.get(key, 0.0) + value

        for row in book.totals():
            where = {"team": team, "project": row.project, "pool": row.pool}
            for state, amount in (("held", row.held_s), ("running", row.running_s)):
                of = {**where, "resource": row.resource, "state": state}
                count("trainstack_gpu_hours_total", gpu_hours(row.resource, amount), **of)
            for state, amount in (("used", row.used_s), ("idle", row.idle_s)):
                hours = gpu_hours(row.resource, amount)
                count("trainstack_gpu_use_hours_total", hours, **where, state=state)
            cost = usd(self._prices, row.pool, row.resource, row.held_s)
            if cost is None:
                held = gpu_hours(row.resource, row.held_s)
                count("trainstack_ledger_unpriced_hours_total", held, team=team, pool=row.pool)
            else:
                count("trainstack_gpu_cost_usd_total", cost, **where)
        for (_, pool, resource), amount in book.uncertain.items():
            hours = gpu_hours(resource, amount)
            count("trainstack_ledger_uncertain_hours_total", hours, team=team, pool=pool)
        return found


def of_budget(team: str, uses: Iterable[LimitUse], waiting: int) -> Iterator[Sample]:
    """The samples of a team's budget."""
    for use in uses:
        yield f"trainstack_budget_{use.unit}", (("team", team),), use.limit
        labels = (("team", team), ("budget", use.unit))
        yield "trainstack_budget_used_ratio", labels, use.ratio
        if use.limit:
            yield "trainstack_budget_reserved_ratio", labels, use.reserved / use.limit
    yield "trainstack_budget_waiting_workloads", (("team", team),), waiting


def of_use(book: TeamBook, month: str) -> Iterator[Sample]:
    """Hours of a month such as 2026-11 without activity figures, and until when figures are known.

    No counter: hours are unknown until their figures come.
    """
    sums: dict[tuple[str, str], float] = {}
    for row in book.of_month(month):
        where = row.project, row.pool
        sums[where] = sums.get(where, 0.0) + gpu_hours(row.resource, row.unknown_s)
    for (project, pool), hours in sums.items():
        labels = (("team", book.team), ("project", project), ("pool", pool))
        yield "trainstack_gpu_unknown_hours", labels, hours
    yield "trainstack_ledger_measured_timestamp_seconds", (("team", book.team),), book.measured


def text(samples: Iterable[Sample]) -> str:
    """The samples in the text format of Prometheus, each metric with its help and type."""
    by_name: dict[str, list[tuple[Labels, float]]] = {}
    for name, labels, value in samples:
        by_name.setdefault(name, []).append((labels, value))
    return exposition.text(
        PrometheusMetric(name, kind, [(dict(labels), float(value)) for labels, value in sorted(rows)], words)
        for name, rows in sorted(by_name.items())
        for kind, words in (_HELP[name],)
    )
