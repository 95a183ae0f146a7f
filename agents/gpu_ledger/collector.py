"""Keeps the books of all teams, and answers whether jobs start inside their budgets; runs in a pod.

Everything that is booked has its time from objects of the API: this pod's clock is asked only how old the
book is. Standard library only.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agents.gpu_ledger import check, metrics
from agents.gpu_ledger.attempts import Seen, seen
from agents.gpu_ledger.budget import Budget
from agents.gpu_ledger.decisions import WORKLOADS, Decisions, Team
from agents.gpu_ledger.ledger import Book
from agents.gpu_ledger.price import Prices
from agents.gpu_ledger.shelf import ChangedError, Shelf
from agents.gpu_ledger.usage import Usage
from agents.shared.api_server import ApiServer, RefusedError, say
from agents.shared.health import Health
from agents.shared.prometheus import SilentError
from agents.shared.times import seconds, stamp

# One watch lasts as long, at most; what waits for the clock is looked at in between.
WATCH_S = 5.0
# A book that changed is written so often, and one that only got older; what people decided is at once.
CHANGED_S, OLDER_S = 10.0, 60.0
# A change is committed, and seen here, a moment after the time that Kueue writes into it.
BEHIND_S = 5
# Nothing is well any more when nobody came around for as long.
PATIENCE_S = 120.0
_RETRY_S = 5.0
_GONE = 410
# A jump of the API server's clock beside this pod's that is no mere correction.
_JUMP_S = 60

Object = Mapping[str, Any]


class Collector:
    """The books, and what they are kept from."""

    def __init__(self, server: ApiServer, config: Object, tell: Callable[[str], None] = say) -> None:
        self._server, self._tell = server, tell
        self._complained = ""
        self._prices: Prices = config["prices"]
        self._teams: Mapping[str, str] = config["teams"]
        """Names by namespace."""
        self._told: Mapping[str, Object] = config["budgets"]
        self._budgets = {name: Budget.parse(row) for name, row in self._told.items()}
        self._shelf = Shelf(server)
        self._usage = Usage(server, config["prometheus"])
        self._counters = metrics.Counters(self._prices)
        self._books: dict[str, Book] = {}
        self._existing: dict[str, str] = {}
        """Namespace of each Workload, by its UID."""
        self._decisions: dict[str, Decisions] = {}
        self._changed: set[str] = set()
        self._written: dict[str, float] = {}
        self._noted: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        self._kept_at: dict[str, float] = {}
        self._clock: tuple[int, float] | None = None
        self._answers = False
        self.text = "\n"
        """The metrics, as of the last time that it came around."""

    def run(self, beat: Callable[[], None]) -> None:
        """Keep the books until the process ends; what goes wrong is told, and begun anew."""
        while True:
            try:
                beat()
                self.begin()
                version = self._list()
                while True:
                    version = self._follow(version)
                    self.settle()
                    beat()
            except ChangedError as error:
                self._complain(f"read anew, because somebody else wrote: {error}")
                time.sleep(_RETRY_S)
            except RefusedError as error:
                if error.status != _GONE:
                    self._complain(f"the API server refuses: {error}")
                    time.sleep(_RETRY_S)
            except OSError as error:
                self._complain(f"the API server cannot be reached: {error}")
                time.sleep(_RETRY_S)

    def begin(self) -> None:
        """Read every book; what was noted and not kept yet is noted again."""
        now = self._now()
        unkept = {name: book.since(self._noted.get(name, 0)) for name, book in self._books.items()}
        self._books.clear()
        self._noted.clear()
        for namespace, team in self._teams.items():
            try:
                self._books[namespace] = book = self._shelf.read(namespace, team, now)
            except (KeyError, TypeError, ValueError) as error:
                # One that nobody can read stops no other team's; it is left as it is.
                self._tell(f"{namespace}: its book cannot be read, move it away: {error!r}")
                continue
            for note in unkept.get(namespace, ()):
                # The answer to a write may be what was lost.
                if note not in book.notes:
                    book.note(note)
            self._counters.begin(team, book)
            book.terms = {"prices": self._prices, "budget": self._told.get(namespace)}
        self._existing.clear()
        self._decisions = {
            namespace: Decisions(self._server, Team(namespace, budget), self._prices)
            for namespace, budget in self._budgets.items()
            if namespace in self._books
        }
        self._answers = not any(budget.stop for budget in self._budgets.values())

    def settle(self) -> None:
        """Everything that is done from time to time: write books, call who waits, tell the metrics."""
        now = self._now()
        self._look_at_clock(now)
        self._say_that_it_answers(now)
        self._measure(now)
        samples: list[tuple[str, metrics.Labels, float]] = []
        month = stamp(now)[:7]
        for namespace, book in self._books.items():
            book.seen = max(book.seen, now - BEHIND_S)
            decisions = self._decisions.get(namespace)
            if decisions:
                decisions.call(book, now)
                decisions.warn(book, now)
                samples += metrics.of_budget(book.team, decisions.uses(book, now), decisions.waiting)
            self._shelf.archive(namespace, book, now)
            self._keep(namespace, book)
            self._counters.add(book.team, book)
            of_team = (("team", book.team),)
            samples.append(("trainstack_ledger_seen_timestamp_seconds", of_team, book.seen))
            samples += metrics.of_use(book, month)
            samples.append(("trainstack_ledger_book_bytes", of_team, self._bytes.get(namespace, 0)))
            if namespace in self._kept_at:
                samples.append(
                    ("trainstack_ledger_written_timestamp_seconds", of_team, self._kept_at[namespace])
                )
        self.text = metrics.text([*self._counters.samples(), *samples])

    # --------------------------------------------------------------------------------------------------

    def _measure(self, now: int) -> None:
        """Book what GPUs did; hours that are held are booked without it, too."""
        try:
            self._changed |= self._usage.book(self._books, now)
        except (SilentError, RefusedError) as error:
            self._complain(f"what GPUs do is unknown: {error}")

    def _list(self) -> str:
        version, undecided = "", []
        # Finished Workloads may be many: none of them is kept longer than its page.
        for page, version in self._server.paged(f"{WORKLOADS}/workloads"):  # noqa: B007 - the last one
            now = self._now()
            for workload in page:
                said = self._observe(workload, now, watched=False)
                if said and said.finished is None and said.namespace in self._decisions:
                    undecided.append(workload)
        now = self._now()
        # Only now is it known what is used.
        for workload in undecided:
            self._decide(workload, now)
        for namespace, book in self._books.items():
            existing = {uid for uid, home in self._existing.items() if home == namespace}
            self._usage.only(namespace, existing, book.seen)
            for uid in set(book.open) - existing:
                book.vanished(uid, now)
            book.forget(existing)
        self.settle()
        return version

    def _follow(self, version: str) -> str:
        began = time.monotonic()
        for change in self._server.watched(f"{WORKLOADS}/workloads", version, WATCH_S):
            workload = change["object"]
            version = workload["metadata"]["resourceVersion"]
            if change["type"] in ("ADDED", "MODIFIED"):
                self._observe(workload, self._now(), watched=True)
                self._decide(workload, self._now())
            elif change["type"] == "DELETED":
                self._deleted(workload, self._now())
            if time.monotonic() > began + WATCH_S:
                # Under load, the server's own end of the watch comes late.
                break
        return version

    def _observe(self, workload: Object, now: int, *, watched: bool) -> Seen | None:
        """Book what a Workload says; None where there is nothing to book, or no book."""
        metadata = workload["metadata"]
        namespace = metadata["namespace"]
        book, said = self._books.get(namespace), seen(workload)
        if book is None or said is None:
            return None
        self._existing[said.uid] = namespace
        self._usage.observe(workload, said)
        book.observe(said, now, watched=watched)
        self._changed.add(namespace)
        return said

    def _decide(self, workload: Object, now: int) -> None:
        namespace = workload["metadata"]["namespace"]
        if namespace in self._decisions:
            self._decisions[namespace].observe(workload, self._books[namespace], now)

    def _deleted(self, workload: Object, now: int) -> None:
        metadata = workload["metadata"]
        if metadata["uid"] not in self._existing:
            return
        namespace = self._existing.pop(metadata["uid"])
        said, book = seen(workload), self._books[namespace]
        if said is not None:
            self._usage.observe(workload, said)
            book.observe(said, now, watched=True)
        marked = metadata.get("deletionTimestamp")
        at = seconds(marked) if marked else now
        self._usage.gone(metadata["uid"], at)
        book.deleted(metadata["uid"], at)
        self._changed.add(namespace)
        if namespace in self._decisions:
            self._decisions[namespace].gone(metadata["uid"])

    def _keep(self, namespace: str, book: Book) -> None:
        every = CHANGED_S if namespace in self._changed else OLDER_S if book.open else float("inf")
        now = time.monotonic()
        noted = self._noted.get(namespace, 0) != book.noted
        if not noted and namespace in self._written and now < self._written[namespace] + every:
            return
        self._bytes[namespace] = self._shelf.write(namespace, book)
        self._noted[namespace] = book.noted
        self._written[namespace], self._kept_at[namespace] = now, time.time()
        self._changed.discard(namespace)

    def _complain(self, text: str) -> None:
        """Tell what goes wrong, once while it stays the same."""
        if text != self._complained:
            self._complained = text
            self._tell(text)

    def _say_that_it_answers(self, now: int) -> None:
        """Tell Kueue, once: queues with the check take no job before."""
        if not self._answers:
            path = f"{WORKLOADS}/admissionchecks/{check.CHECK}/status"
            status, said = self._server.ask("PATCH", path, check.active(now))
            self._answers = status < 300
            if not self._answers:
                self._complain(f"no admission check {check.CHECK}: {status} {said.get('message')}")

    def _now(self) -> int:
        """The API server's time."""
        return self._server.now()

    def _look_at_clock(self, now: int) -> None:
        """Name a jump of the API server's clock beside this machine's steady one."""
        steady = time.monotonic()
        if self._clock is not None:
            jumped = now - self._clock[0] - (steady - self._clock[1])
            if abs(jumped) > _JUMP_S:
                self._tell(f"the API server's clock jumped by {jumped:.0f} s")
                for book in self._books.values():
                    book.clock_jumped(now, round(jumped))
        self._clock = (now, steady)


def main() -> int:
    """Keep the books, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=json.loads, required=True, help="teams, budgets and prices, as JSON")
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    collector = Collector(ApiServer(asked.account), asked.config)
    health = Health(asked.port, lambda: collector.text, PATIENCE_S)
    collector.run(health.beat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
