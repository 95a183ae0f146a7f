"""The books of all teams in memory: read, written and archived apart from each other; runs in a pod.

A failure with one book is logged, counted and retried ever later, and stops no other one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agents.gpu_ledger.book_store import BookStore, ChangedError
from agents.gpu_ledger.entries import Note
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.metrics import Counters, Sample
from agents.gpu_ledger.sharing import NONE_SHARED, SharedPools
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError

# Intervals of writing a changed book and one that only advanced. The first change after a while is written at
# once.
CHANGED_S, OLDER_S = 10.0, 60.0
# Of many books together, at most 12 are written in a minute.
_EACH_S = 5.0
# Rows of past days are few, and come once a day, for all teams at the same time: one after the other.
_ARCHIVE_S, _EACH_ARCHIVE_S = 3600, 20.0
_RETRY_S, _MOST_RETRY_S = 10.0, 600.0
# Reasons of failures in metrics, by HTTP status.
_REASONS = {403: "forbidden", 404: "conflict", 409: "conflict", 413: "too_large", 422: "too_large"}


class Books:
    """The books that could be read, by namespace."""

    def __init__(
        self,
        server: ApiServer,
        teams: Mapping[str, str],
        counters: Counters,
        log: Callable[[str], None],
        shared: SharedPools = NONE_SHARED,
    ) -> None:
        self._teams, self._counters, self._log = teams, counters, log
        self._store = BookStore(server, shared)
        self.loaded: dict[str, TeamBook] = {}
        self._changed: set[str] = set()
        self._noted: dict[str, int] = {}
        self._unkept: dict[str, Sequence[Note]] = {}
        """Notes of dropped books, which may not be stored."""
        self._written: dict[str, float] = {}
        self._archived: dict[str, int] = {}
        self._may_archive = 0.0
        self._sizes: dict[str, tuple[int, float]] = {}
        """Bytes and time of the last write."""
        self._failures: dict[tuple[str, str], int] = {}
        self._retries: dict[str, tuple[int, float]] = {}
        """Number of failures in a row, and when the next attempt may be made."""

    def due(self) -> list[str]:
        """Namespaces whose book is to be read now."""
        return [name for name in self._teams if name not in self.loaded and self._may(name)]

    def load(self, namespace: str, now: int, complete: Callable[[TeamBook], None]) -> None:
        """Read a book, and `complete` it with the state of its Workloads; it is `loaded` if both succeed."""
        team = self._teams[namespace]
        with self.apart(namespace):
            book = self._store.read(namespace, team, now)
            for note in self._unkept.get(namespace, ()):
                # The write may have succeeded with its response lost.
                if note not in book.notes:
                    book.note(note)
            self._noted[namespace] = 0
            self._counters.begin(team, book)
            complete(book)
            self.loaded[namespace] = book
            self._unkept.pop(namespace, None)
            self._changed.add(namespace)
            self._retries.pop(namespace, None)

    def drop(self, namespace: str) -> None:
        """Forget a book, so that it is read again; notes that were not stored yet are added then."""
        book = self.loaded.pop(namespace, None)
        if book is not None:
            self._unkept[namespace] = book.since(self._noted.get(namespace, 0))

    def changed(self, namespace: str) -> None:
        """Note a change that is to be written."""
        self._changed.add(namespace)

    def keep(self, namespace: str, now: int) -> None:
        """Count the growth of a book, and write it and its archives where that is due."""
        book = self.loaded[namespace]
        self._counters.add(book.team, book)
        if not self._may(namespace):
            return
        at = time.monotonic()
        # An archive belongs to a book that is stored.
        due = namespace in self._sizes and abs(now - self._archived.get(namespace, 0)) >= _ARCHIVE_S
        if due and at >= self._may_archive:
            self._archived[namespace] = now
            self._archive(namespace, book, now)
        changed = namespace in self._changed or self._noted.get(namespace, 0) != book.noted
        every = CHANGED_S if changed else OLDER_S if book.open else float("inf")
        every = max(every, _EACH_S * len(self.loaded))
        if namespace in self._written and at < self._written[namespace] + every:
            return
        with self.apart(namespace):
            size = self._store.write(namespace, book)
            self._noted[namespace] = book.noted
            self._written[namespace], self._sizes[namespace] = at, (size, time.time())
            self._changed.discard(namespace)
            self._retries.pop(namespace, None)

    def _archive(self, namespace: str, book: TeamBook, now: int) -> None:
        busy = True
        with self.apart(namespace):
            busy = self._store.archive(namespace, book, now)
            if busy:
                self._counters.archived(book.team, book)
                self._written.pop(namespace, None)
        # A quota that is used up puts off no write of the book.
        with self.apart(namespace, waits=False):
            busy = self._store.reserve(namespace, book, now) or busy
        if busy:
            self._may_archive = time.monotonic() + _EACH_ARCHIVE_S

    @contextmanager
    def apart(self, namespace: str, *, waits: bool = True) -> Iterator[None]:
        """Report a failure with the objects of one namespace, and go on with the others.

        `waits`: its book is not read or written for a while. Raises OSError: without a connection nothing can
        be done for others, either.
        """
        try:
            yield
        except ChangedError as error:
            self._failed(namespace, "conflict", error, waits=waits)
            self.drop(namespace)
        except ApiServerError as error:
            self._failed(namespace, _REASONS.get(error.status, "server"), error, waits=waits)
        except UNREADABLE as error:
            self._failed(namespace, "unreadable", error, waits=waits)
        except OSError as error:
            self._failed(namespace, "unreachable", error, waits=waits)
            raise

    def samples(self) -> Iterator[Sample]:
        """The metrics of the files, and of failures."""
        for namespace, team in self._teams.items():
            labels = (("team", team), ("namespace", namespace))
            size, written = self._sizes.get(namespace, (0, 0.0))
            yield "trainstack_ledger_book_bytes", labels, size
            if written:
                yield "trainstack_ledger_written_timestamp_seconds", labels, written
        for (namespace, reason), count in self._failures.items():
            labels = (("team", self._teams[namespace]), ("namespace", namespace))
            yield "trainstack_ledger_write_failures_total", (*labels, ("reason", reason)), count

    def _may(self, namespace: str) -> bool:
        return time.monotonic() >= self._retries.get(namespace, (0, 0.0))[1]

    def _failed(self, namespace: str, reason: str, error: Exception, *, waits: bool) -> None:
        self._failures[namespace, reason] = self._failures.get((namespace, reason), 0) + 1
        if waits:
            count, _ = self._retries.get(namespace, (0, 0.0))
            wait_s = min(_MOST_RETRY_S, _RETRY_S * 2**count)
            # The exponent is bounded, too: it would grow for months.
            self._retries[namespace] = min(count + 1, 10), time.monotonic() + wait_s
        self._log(f"{namespace}: {reason}: {error!r}")


def terms(config: Mapping[str, Any], namespace: str, book: TeamBook) -> Mapping[str, Any]:
    """Prices, shares of GPUs, and budget of a team in the configuration.

    Pools that it does not have any more, such as those of a cluster that has left, keep the price that the
    book had for their hours: else the use of a budget would fall when a pool is removed.
    """
    shared = SharedPools.of(config)
    booked = {pool for _, _, pool, _ in (*book.rows, *book.sums)} | {
        pool for one in book.open.values() for pool, _ in one.shares
    }
    past = {pool: price for pool, price in (book.terms.get("prices") or {}).items() if pool in booked}
    return {
        **vars(shared),
        "prices": {**past, **shared.prices},
        "budget": config["budgets"].get(namespace),
    }
