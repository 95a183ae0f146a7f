"""The books of teams, read from their ConfigMaps in a cluster."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.gpu_ledger.archive import Archive
from agents.gpu_ledger.book_store import KEY, NAME
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import HOUR, usd
from agents.gpu_ledger.row import LedgerRow, merged
from infra.errors import Problem, UserError

Ask = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs kubectl with arguments: exit code, output, errors."""


@dataclass(frozen=True)
class Line:
    """The use of one resource of one pool by one project on one day."""

    team: str
    namespace: str
    row: LedgerRow
    usd: float | None
    """US dollars of the held hours; None where the pool has no price."""

    @property
    def held_hours(self) -> float:
        """Device-hours from admission to the end."""
        return self.row.held_s / HOUR

    @property
    def running_hours(self) -> float:
        """Of these, with all pods ready."""
        return self.row.running_s / HOUR

    @property
    def used_hours(self) -> float | None:
        """Held hours in which devices were used; None without utilization data."""
        return self.row.used_s / HOUR if self.row.measured_s else None

    @property
    def idle_hours(self) -> float | None:
        """Held hours in which devices were idle; None without utilization data."""
        return self.row.idle_s / HOUR if self.row.measured_s else None

    @property
    def unknown_hours(self) -> float:
        """Held hours without utilization data."""
        return self.row.unknown_s / HOUR


@dataclass(frozen=True)
class Month:
    """A month of one team."""

    team: str
    namespace: str
    lines: Sequence[Line]
    uncertain_hours: float
    """Device-hours that may have been held in addition to the lines."""
    seen: int
    """The time until which the book is complete, in seconds since 1970."""
    budget: Mapping[str, Any] | None
    notes: Sequence[str]
    """Jobs of this month that were held or exempt, with reasons."""

    @property
    def held_hours(self) -> float:
        """Device-hours of all lines."""
        return sum(line.held_hours for line in self.lines)

    @property
    def usd(self) -> float:
        """US dollars of all lines that have a price."""
        return sum(line.usd for line in self.lines if line.usd is not None)

    @property
    def unpriced(self) -> Sequence[str]:
        """Pools without a price, which sums of dollars exclude."""
        return sorted({line.row.pool for line in self.lines if line.usd is None and line.row.held_s})


def read(ask: Ask, team: str, namespace: str, month: str) -> Month:
    """A month of a team, such as 2026-11. Raises UserError for a missing or unreadable book."""
    from agents.shared.times import stamp  # noqa: PLC0415 - help does not need it

    text = _config_map(ask, namespace, NAME)
    if text is None:
        fix = "It is written a minute after `up`; check the pod: kubectl -n trainstack-accounting get pods"
        rule = f"namespace {namespace} has no book yet"
        raise UserError([Problem("team", team, rule, fix, code="ledger-book-missing")])
    book = TeamBook.parse(text)
    rows, terms = list(book.totals(month)), dict(book.terms)
    if month in book.archived and (archive := _config_map(ask, namespace, f"{NAME}-{month}")):
        found = Archive.parse(archive)
        rows, terms = merged([*found.rows, *rows]), dict(found.terms)
    prices = terms.get("prices") or {}
    return Month(
        team=team,
        namespace=namespace,
        lines=[Line(team, namespace, row, usd(prices, row.pool, row.resource, row.held_s)) for row in rows],
        uncertain_hours=sum(left for (day, *_), left in book.uncertain.items() if day.startswith(month))
        / HOUR,
        seen=book.seen,
        budget=terms.get("budget"),
        notes=[
            f"{stamp(note.at)} {note.what} {note.who}: {note.why}"
            for note in book.notes
            if stamp(note.at).startswith(month)
        ],
    )


def _config_map(ask: Ask, namespace: str, name: str) -> str | None:
    """The text of a book; None where there is no such ConfigMap. Raises UserError."""
    code, out, errors = ask([f"--namespace={namespace}", "get", "configmap", name, "--output=json"])
    if code == 0:
        return str(json.loads(out)["data"][KEY])
    if "NotFound" in errors:
        return None
    fix = "Log in to the cloud as a member of the team, or as an administrator."
    raise UserError([Problem("kubectl", f"configmap/{name}", errors.strip(), fix, code="kubectl-failed")])
