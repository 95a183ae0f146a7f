"""Controller of the ledger: keeps the books of all teams and decides on job starts; runs in a pod.

It watches the Workloads of all teams, so it also writes the reasons why jobs do not start on the jobs, and
starts those again whose members ask for it (`agents.queued_jobs`, docs/adr/0050). All booked times are from
objects of the API: this pod's clock is used only for the age of the book. Standard library only.
"""

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.gpu_ledger import check, metrics
from agents.gpu_ledger.attempts import Seen, seen
from agents.gpu_ledger.books import Books, terms
from agents.gpu_ledger.budget import GpuBudget
from agents.gpu_ledger.decisions import BudgetTeam, Decisions
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.price import Prices
from agents.gpu_ledger.sharing import SharedPools
from agents.gpu_ledger.usage import GpuUsage
from agents.queued_jobs.reports import Reports
from agents.queued_jobs.retries import Retries
from agents.queued_jobs.submitted import SubmittedJobs
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError, say
from agents.shared.health import Health
from agents.shared.kueue import API
from agents.shared.prometheus import PrometheusError
from agents.shared.times import seconds, stamp

# Duration of a watch, by the server and by this program; timed work is done in between.
WATCH_S, LONGEST_S = 10.0, 60.0
# A change is committed, and visible here, a moment after the time that Kueue writes into it.
BEHIND_S = 5
# Unhealthy without a round for this long.
PATIENCE_S = 120.0
# Wait after an error of the API server, doubled up to the longest one.
_RETRY_S, _MOST_RETRY_S = 5.0, 60.0
_GONE = 410
# A jump of the API server's clock, relative to this pod's, beyond a correction.
_JUMP_S = 60

Object = Mapping[str, Any]


class Collector:
    """The books and the state from which they are updated."""

    def __init__(self, server: ApiServer, config: Object, log: Callable[[str], None] = say) -> None:
        self._server, self._log, self._config = server, log, config
        self._complained = ""
        self._shared = SharedPools.of(config)
        self._prices: Prices = config["prices"]
        budgets = {name: GpuBudget.parse(row) for name, row in config["budgets"].items()}
        self._counters = metrics.Counters(self._prices)
        self._books = Books(server, config["teams"], self._counters, log, self._shared)
        self._decisions = {
            name: Decisions(server, BudgetTeam(name, budget), self._prices, self._shared.parts)
            for name, budget in budgets.items()
            if name in config["teams"]
        }
        self._usage = GpuUsage(server, config["prometheus"])
        self._reports, self._retries = Reports(server, log), Retries(server, log)
        self._submitted = SubmittedJobs(server, config["teams"], log)
        self._unprocessed: set[str] = set()
        """UIDs of jobs without a Workload."""
        self._beat: Callable[[], None] = lambda: None
        self._at = ""
        """Version of the last observed change of a Workload."""
        self._clock: tuple[int, float] | None = None
        self._answers = not any(budget.stop for budget in budgets.values())
        self.text = "\n"
        """The metrics of the last round."""

    def run(self, beat: Callable[[], None]) -> None:
        """Keep the books until the process ends; errors are logged, and requests repeated ever later."""
        wait_s, self._beat = _RETRY_S, beat
        while True:
            beat()
            try:
                # Before the first list, so that no change is missed.
                self._at = self._at or self._server.version(f"{API}/workloads")
                if self.load():
                    # What was read is shown, and jobs are activated, before the first watch is over.
                    self.settle()
                complete = self._follow()
                self.settle(int(self._at) if self._at.isdecimal() else 0, complete=complete)
                wait_s = _RETRY_S
            except (ApiServerError, OSError) as error:
                if isinstance(error, ApiServerError) and error.status == _GONE:
                    # Changes were missed.
                    self._at = ""
                    for namespace in [*self._books.loaded]:
                        self._books.drop(namespace)
                self._complain(f"the API server: {error}")
                time.sleep(wait_s)
                wait_s = min(_MOST_RETRY_S, 2 * wait_s)

    def load(self) -> bool:
        """Read the books that are not in memory, and the Workloads of their namespaces; False for none.

        Raises OSError.
        """
        due = self._books.due()
        for number, namespace in enumerate(due):
            if number:
                # Many of them take longer than one round.
                self._beat()
            self._books.load(namespace, self._now(), functools.partial(self._complete, namespace=namespace))
        return bool(due)

    def settle(self, version: int = 0, *, complete: bool = True) -> None:
        """Do the periodic work: write books, activate waiting jobs, update the metrics. Raises OSError.

        All changes of Workloads until `version` are observed; `complete`: all until now.
        """
        now = self._now()
        self._look_at_clock(now)
        self._activate_check(now)
        self._measure(now)
        samples: list[metrics.Sample] = []
        month = stamp(now)[:7]
        for namespace, book in [*self._books.loaded.items()]:
            if complete:
                book.seen = max(book.seen, now - BEHIND_S)
            book.version = max(book.version, version)
            decisions = self._decisions.get(namespace)
            if decisions:
                with self._books.apart(namespace, waits=False):
                    decisions.call(book, now)
                    decisions.warn(book, now)
                samples += metrics.of_budget(book.team, decisions.uses(book, now), decisions.waiting)
            labels = (("team", book.team), ("namespace", namespace))
            samples.append(("trainstack_ledger_seen_timestamp_seconds", labels, book.seen))
            samples += metrics.of_use(book, month)
        try:
            for namespace in [*self._books.loaded]:
                self._books.keep(namespace, now)
        finally:
            self.text = metrics.text([*self._counters.samples(), *samples, *self._books.samples()])
        # Last: the books do not wait for them.
        self._serve_members()

    # --------------------------------------------------------------------------------------------------

    def _serve_members(self) -> None:
        """Report why jobs do not start, and start those again whose members ask for it. Raises OSError."""
        self._submitted.poll()
        now, at = self._now(), time.monotonic()
        found = {str(job.owner["uid"]): (job, why) for job, why in
                 self._submitted.unprocessed(self._books.loaded, now)}  # fmt: skip
        for uid in self._unprocessed - found.keys():
            self._reports.gone(uid)
        self._unprocessed = {*found}
        for uid, (job, why) in found.items():
            self._reports.take(uid, job.namespace, [job.owner], why, now=now, at=at)
        self._reports.send(now, at)
        self._retries.obey(self._submitted.retry, now, at)

    def _measure(self, now: int) -> None:
        """Book the activity of GPUs; held hours are booked without it, too."""
        try:
            for namespace in self._usage.book(self._books.loaded, now):
                self._books.changed(namespace)
        except (PrometheusError, ApiServerError) as error:
            self._complain(f"no activity of GPUs: {error}")

    def _complete(self, book: TeamBook, *, namespace: str) -> None:
        """Bring a book that was read up to date with the Workloads of its namespace, and decide on these."""
        book.terms = dict(terms(self._config, namespace, book))
        decisions = self._decisions.get(namespace)
        if decisions:
            decisions.forget()
        existing, undecided, latest = set[str](), [], 0
        # Finished Workloads may be many: only one page of them is in memory.
        for page, at in self._server.paged(f"{API}/namespaces/{namespace}/workloads"):
            now = self._now()
            if not latest and at.isdecimal():
                latest = int(at)
                book.bound(latest, now)
            for workload in page:
                existing.add(workload["metadata"]["uid"])
                self._queued("ADDED", workload)
                with self._books.apart(namespace, waits=False):
                    state = self._observe(book, workload, now, watched=False)
                    if decisions and state and state.finished is None:
                        undecided.append(workload)
        now = self._now()
        self._usage.only(namespace, existing, book.seen)
        self._reports.only(namespace, existing | self._unprocessed)
        for known in (self._retries, self._submitted):
            known.only(namespace, existing)
        for uid in set(book.open) - existing:
            book.vanished(uid, now)
        book.forget(existing)
        book.seen, book.version = max(book.seen, now - BEHIND_S), max(book.version, latest)
        # Only now the total use is known.
        for workload in undecided:
            with self._books.apart(namespace, waits=False):
                self._decide(book, workload, now)

    def _follow(self) -> bool:
        """Observe changes for a while; returns whether all until now are observed."""
        began = time.monotonic()
        for change in self._server.watched(f"{API}/workloads", self._at, WATCH_S):
            workload = change["object"]
            at = self._at = str(workload["metadata"]["resourceVersion"])
            namespace = workload["metadata"].get("namespace", "")
            if namespace in self._config["teams"] and change["type"] != "BOOKMARK":
                self._queued(change["type"], workload)
            book = self._books.loaded.get(namespace)
            # A book that was read meanwhile has some of the changes.
            if book is not None and change["type"] != "BOOKMARK" and not 0 < int(at) <= book.version:
                with self._books.apart(namespace, waits=False):
                    self._changed(book, change["type"], workload)
            if time.monotonic() > began + LONGEST_S:
                # Under load, changes come faster than they are observed.
                return False
        return True

    def _queued(self, kind: str, workload: Object) -> None:
        """Take the state of a Workload for Events of its job, and for retries."""
        head = workload["metadata"]
        if kind == "DELETED":
            for known in (self._reports, self._retries, self._submitted):
                known.gone(head["uid"])
            return
        with self._books.apart(head["namespace"], waits=False):
            self._submitted.observe(workload)
            self._retries.observe(workload)
            self._reports.observe(workload, self._now(), time.monotonic())

    def _changed(self, book: TeamBook, kind: str, workload: Object) -> None:
        if kind == "DELETED":
            self._deleted(book, workload, self._now())
        else:
            self._observe(book, workload, self._now(), watched=True)
            self._decide(book, workload, self._now())

    def _observe(self, book: TeamBook, workload: Object, now: int, *, watched: bool) -> Seen | None:
        """Book the state of a Workload; None where there is nothing to book."""
        try:
            state = seen(workload, self._shared.parts)
        except UNREADABLE:
            # A release that can read it books it.
            if book.unreadable(workload["metadata"]["uid"]):
                self._books.changed(workload["metadata"]["namespace"])
            raise
        if state is None:
            return None
        if book.observe(state, now, watched=watched):
            self._books.changed(state.namespace)
        # Figures count for the project that the hours are booked for.
        self._usage.observe(workload, replace(state, project=book.project(state)), book.measured)
        return state

    def _decide(self, book: TeamBook, workload: Object, now: int) -> None:
        namespace = workload["metadata"]["namespace"]
        if namespace in self._decisions:
            self._decisions[namespace].observe(workload, book, now)

    def _deleted(self, book: TeamBook, workload: Object, now: int) -> None:
        self._observe(book, workload, now, watched=True)
        metadata = workload["metadata"]
        namespace, marked = metadata["namespace"], metadata.get("deletionTimestamp")
        at = seconds(marked) if marked else now
        self._usage.gone(metadata["uid"], at)
        if book.deleted(metadata["uid"], at):
            self._books.changed(namespace)
        if namespace in self._decisions:
            self._decisions[namespace].gone(metadata["uid"])

    def _complain(self, text: str) -> None:
        """Log an error, once while it stays the same."""
        if text != self._complained:
            self._complained = text
            self._log(text)

    def _activate_check(self, now: int) -> None:
        """Activate the admission check, once: queues with the check admit no job before."""
        if not self._answers:
            path = f"{API}/admissionchecks/{check.CHECK}/status"
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
                for book in self._books.loaded.values():
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
