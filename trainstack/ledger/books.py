"""The books of teams, read from their ConfigMaps in a cluster."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agents.gpu_ledger import book_text
from agents.gpu_ledger.archive import Archive, ArchivePart
from agents.gpu_ledger.book_store import NAME, text_of
from agents.gpu_ledger.price import gpu_hours, usd
from agents.gpu_ledger.row import LedgerRow
from agents.gpu_ledger.sharing import SharedPools
from agents.shared.api_server import UNREADABLE
from infra.clouds.kubectl import ApiResponse
from infra.errors import Problem, UserError
from trainstack.ledger.hourly import Hourly

_OK, _DENIED, _MISSING = 200, 403, 404
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")
Ask = Callable[[str], ApiResponse]
"""Sends a GET of a path to the API server."""


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
        """GPU-hours from admission to the end; a share of a GPU counts as its part."""
        return gpu_hours(self.row.resource, self.row.held_s)

    @property
    def running_hours(self) -> float:
        """Of these, with all pods ready."""
        return gpu_hours(self.row.resource, self.row.running_s)

    @property
    def used_hours(self) -> float | None:
        """Held hours in which devices were used; None without utilization data."""
        return gpu_hours(self.row.resource, self.row.used_s) if self.row.measured_s else None

    @property
    def idle_hours(self) -> float | None:
        """Held hours in which devices were idle; None without utilization data."""
        return gpu_hours(self.row.resource, self.row.idle_s) if self.row.measured_s else None

    @property
    def unknown_hours(self) -> float:
        """Held hours without utilization data."""
        return gpu_hours(self.row.resource, self.row.unknown_s)


@dataclass(frozen=True)
class Month:
    """A month of one team."""

    team: str
    namespace: str
    lines: Sequence[Line]
    uncertain_hours: float
    """GPU-hours that may have been held in addition to the lines."""
    begun: int
    """The time from which the book counts, in seconds since 1970."""
    seen: int
    """The time until which the book is complete, in seconds since 1970."""
    budget: Mapping[str, Any] | None
    notes: Sequence[str]
    """Jobs of this month that were held or exempt, with reasons."""
    hourly: Hourly | None = None
    """Held GPU-hours by the hour; None: a book, which counts by day."""

    @property
    def held_hours(self) -> float:
        """GPU-hours of all lines."""
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
        fix = (
            "It is written a minute after `up`. An administrator checks the pod: "
            "kubectl -n trainstack-accounting get pods"
        )
        rule = f"namespace {namespace} has no book yet"
        raise UserError([Problem("team", team, rule, fix, code="ledger-book-missing")])
    book = _parsed(book_text.parse, text, namespace, NAME)
    part = ArchivePart(book.totals(month), [(*key, left) for key, left in book.uncertain.items()])
    terms: Mapping[str, Any] = book.terms
    if number := book.archived.get(month):
        name = f"{NAME}-{month}"
        archive = _config_map(ask, namespace, name)
        if archive is None:
            fix = "Restore it from a backup; the other months can be read."
            raise UserError([_problem(namespace, name, "does not exist, and the book lists it", fix)])
        found = _parsed(Archive.parse, archive, namespace, name)
        old = _parsed(found.at, number, namespace, name)
        if stamp(book.seen).startswith(month):
            old = SharedPools.of(terms).archived(old, found.terms)
        else:
            # Prices of a month that is over are those of then.
            terms = found.terms
        part = old.with_(part)
    prices, rows = terms.get("prices") or {}, part.of(month).rows
    return Month(
        team=team,
        namespace=namespace,
        lines=[Line(team, namespace, row, usd(prices, row.pool, row.resource, row.held_s)) for row in rows],
        uncertain_hours=sum(gpu_hours(resource, left) for *_, resource, left in part.of(month).uncertain),
        begun=book.begun,
        seen=book.seen,
        budget=terms.get("budget"),
        notes=[
            f"{stamp(note.at)} {note.what} {note.who}: {note.why}"
            for note in book.notes
            if stamp(note.at).startswith(month)
        ],
    )


def _parsed(read: Callable[[_Given], _Found], given: _Given, namespace: str, name: str) -> _Found:
    """The result of `read`. Raises UserError for a book that cannot be read."""
    try:
        return read(given)
    except UNREADABLE as error:
        fix = "Run the command again; if that does not help, update trainstack, or restore the ConfigMap."
        raise UserError([_problem(namespace, name, f"cannot be read: {error}", fix)]) from error


def _problem(namespace: str, name: str, rule: str, fix: str) -> Problem:
    return Problem("book", f"{namespace}/{name}", rule, fix, code="ledger-book-unreadable")


def _config_map(ask: Ask, namespace: str, name: str) -> str | None:
    """The text of a book; None where there is no such ConfigMap. Raises UserError."""
    response = ask(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    if response.status == _OK:
        return _parsed(text_of, response.body, namespace, name)
    if response.status == _MISSING:
        return None
    fix = "Log in to the cloud as a member of the team, or as an administrator."
    code = "cluster-access-denied" if response.status == _DENIED else "cluster-not-readable"
    rule = f"the cluster does not show it: {response.code}: {response.message}"
    raise UserError([Problem("book", f"{namespace}/{name}", rule, fix, code=code)])
