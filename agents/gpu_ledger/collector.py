"""Controller of the ledger: keeps the books of all teams and decides on job starts; runs in a pod.

All booked times are from objects of the API: this pod's clock is used only for the age of the book. Standard
library only.
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
from agents.gpu_ledger.book_store import BookStore, ChangedError
from agents.gpu_ledger.budget import GpuBudget
from agents.gpu_ledger.decisions import WORKLOADS, BudgetTeam, Decisions
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices
from agents.gpu_ledger.usage import GpuUsage
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.health import Health
from agents.shared.prometheus import PrometheusError
from agents.shared.times import seconds, stamp

# Longest duration of a watch; timed work is done in between.
WATCH_S = 5.0
# Intervals of writing a changed book and one that only advanced; notes are written at once.
CHANGED_S, OLDER_S = 10.0, 60.0
# A change is committed, and visible here, a moment after the time that Kueue writes into it.
BEHIND_S = 5
# Unhealthy without a round for this long.
PATIENCE_S = 120.0
_RETRY_S = 5.0
_GONE = 410
# A jump of the API server's clock, relative to this pod's, beyond a correction.
_JUMP_S = 60

Object = Mapping[str, Any]


class Collector:
    """The books and the state from which they are updated."""

    def __init__(self, server: ApiServer, config: Object, log: Callable[[str], None] = say) -> None:
        self._server, self._log = server, log
        self._complained = ""
        self._prices: Prices = config["prices"]
        self._teams: Mapping[str, str] = config["teams"]
        """Names by namespace."""
        self._budget_rows: Mapping[str, Object] = config["budgets"]
        self._budgets = {name: GpuBudget.parse(row) for name, row in self._budget_rows.items()}
        self._store = BookStore(server)
        self._usage = GpuUsage(server, config["prometheus"])
        self._counters = metrics.Counters(self._prices)
        self._books: dict[str, TeamBook] = {}
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
        """The metrics of the last round."""

    def run(self, beat: Callable[[], None]) -> None:
        """Keep the books until the process ends; errors are logged, and the books are read again."""
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
                self._complain(f"read again after a concurrent write: {error}")
                time.sleep(_RETRY_S)
            except ApiServerError as error:
                if error.status != _GONE:
                    self._complain(f"the API server returned an error: {error}")
                    time.sleep(_RETRY_S)
            except OSError as error:
                self._complain(f"the API server cannot be reached: {error}")
                time.sleep(_RETRY_S)

    def begin(self) -> None:
        """Read every book; notes that were not stored yet are added again."""
        now = self._now()
        unkept = {name: book.since(self._noted.get(name, 0)) for name, book in self._books.items()}
        self._books.clear()
        self._noted.clear()
        for namespace, team in self._teams.items():
            try:
                self._books[namespace] = book = self._store.read(namespace, team, now)
            except (KeyError, TypeError, ValueError) as error:
                # An unreadable book does not stop the others; it is left as it is.
                self._log(f"{namespace}: its book cannot be read, move it away: {error!r}")
                continue
            for note in unkept.get(namespace, ()):
                # The write may have succeeded with its response lost.
                if note not in book.notes:
                    book.note(note)
            self._counters.begin(team, book)
            book.terms = {"prices": self._prices, "budget": self._budget_rows.get(namespace)}
        self._existing.clear()
        self._decisions = {
            namespace: Decisions(self._server, BudgetTeam(namespace, budget), self._prices)
            for namespace, budget in self._budgets.items()
            if namespace in self._books
        }
        self._answers = not any(budget.stop for budget in self._budgets.values())

    def settle(self) -> None:
        """Do the periodic work: write books, activate waiting jobs, update the metrics."""
        now = self._now()
        self._look_at_clock(now)
        self._activate_check(now)
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
            self._store.archive(namespace, book, now)
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
        """Book the activity of GPUs; held hours are booked without it, too."""
        try:
            self._changed |= self._usage.book(self._books, now)
        except (PrometheusError, ApiServerError) as error:
            self._complain(f"no activity of GPUs: {error}")

    def _list(self) -> str:
        version, undecided = "", []
        # Finished Workloads may be many: only one page of them is in memory.
        for page, version in self._server.paged(f"{WORKLOADS}/workloads"):  # noqa: B007 - the last one
            now = self._now()
            for workload in page:
                state = self._observe(workload, now, watched=False)
                if state and state.finished is None and state.namespace in self._decisions:
                    undecided.append(workload)
        now = self._now()
        # Only now the total use is known.
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
                # Under load, the server ends the watch late.
                break
        return version

    def _observe(self, workload: Object, now: int, *, watched: bool) -> Seen | None:
        """Book the state of a Workload; None where there is nothing to book, or no book."""
        metadata = workload["metadata"]
        namespace = metadata["namespace"]
        book, state = self._books.get(namespace), seen(workload)
        if book is None or state is None:
            return None
        self._existing[state.uid] = namespace
        self._usage.observe(workload, state)
        book.observe(state, now, watched=watched)
        self._changed.add(namespace)
        return state

    def _decide(self, workload: Object, now: int) -> None:
        namespace = workload["metadata"]["namespace"]
        if namespace in self._decisions:
            self._decisions[namespace].observe(workload, self._books[namespace], now)

    def _deleted(self, workload: Object, now: int) -> None:
        metadata = workload["metadata"]
        if metadata["uid"] not in self._existing:
            return
        namespace = self._existing.pop(metadata["uid"])
        state, book = seen(workload), self._books[namespace]
        if state is not None:
            self._usage.observe(workload, state)
            book.observe(state, now, watched=True)
        marked = metadata.get("deletionTimestamp")
        at = seconds(marked) if marked else now
        self._usage.gone(metadata["uid"], at)
        book.deleted(metadata["uid"], at)
        self._changed.add(namespace)
        if namespace in self._decisions:
            self._decisions[namespace].gone(metadata["uid"])

    def _keep(self, namespace: str, book: TeamBook) -> None:
        every = CHANGED_S if namespace in self._changed else OLDER_S if book.open else float("inf")
        now = time.monotonic()
        noted = self._noted.get(namespace, 0) != book.noted
        if not noted and namespace in self._written and now < self._written[namespace] + every:
            return
        self._bytes[namespace] = self._store.write(namespace, book)
        self._noted[namespace] = book.noted
        self._written[namespace], self._kept_at[namespace] = now, time.time()
        self._changed.discard(namespace)

    def _complain(self, text: str) -> None:
        """Log an error, once while it stays the same."""
        if text != self._complained:
            self._complained = text
            self._log(text)

    def _activate_check(self, now: int) -> None:
        """Activate the admission check, once: queues with the check admit no job before."""
        if not self._answers:
            path = f"{WORKLOADS}/admissionchecks/{check.CHECK}/status"
            status, state = self._server.ask("PATCH", path, check.active(now))
            self._answers = status < 300
            if not self._answers:
                self._complain(f"no admission check {check.CHECK}: {status} {state.get('message')}")

    def _now(self) -> int:
        """The API server's time."""
        return self._server.now()

    def _look_at_clock(self, now: int) -> None:
        """Note a jump of the API server's clock relative to this machine's monotonic one."""
        steady = time.monotonic()
        if self._clock is not None:
            jumped = now - self._clock[0] - (steady - self._clock[1])
            if abs(jumped) > _JUMP_S:
                self._log(f"the API server's clock jumped by {jumped:.0f} s")
                for book in self._books.values():
                    book.clock_jumped(now, round(jumped))
        self._clock = (now, steady)


def main() -> int:
    """Run the collector with the arguments."""
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
