"""The book of a team: GPU-seconds that it held, and which of them are uncertain. Pure; runs in a pod.

A book is a function of the states of Workloads, independent of how often they are read: rows are closed, an
open attempt has the time until which it is booked, and the last booking is kept for as long as its Workload
exists. So it may be written at any time, read again after a crash, and observe the same states of Workloads
again. Its size has a bound that is independent of the number of jobs and of their labels.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agents.gpu_ledger import entries
from agents.gpu_ledger.attempts import OTHER_PROJECT, Seen, Shares, days
from agents.gpu_ledger.entries import MOST_LETTERS, Note, Open, digest
from agents.gpu_ledger.row import Key, LedgerRow, Uncertain, added, merged
from agents.shared.times import stamp

# Only the latest are kept: a ConfigMap holds 1 MiB (k8s.io/api core/v1, `MaxSecretSize`).
MOST_NOTES = 300
# Named projects of a team in two months; hours of further ones are those of `OTHER_PROJECT`.
MOST_PROJECTS = 200
# Finished Workloads whose booking is remembered one by one; older ones are recognized by their version and
# the time of their end.
MOST_DONE = 2000
# A Workload that is changed this long after its end was booked at its end.
_PAST_S = 3600
# The API server's clock is read from a header with whole seconds: it may be late by as much.
LATE_S = 1


class TeamBook:
    """The book of one namespace."""

    def __init__(self, team: str, begun: int) -> None:
        self.team, self.begun = team, begun
        self.seen = begun
        """Time of the API server until which all open attempts are known to have run."""
        self.rows: dict[Key, tuple[int, int]] = {}
        self.uses: dict[Key, tuple[int, int]] = {}
        """Device-seconds with a figure, and of these those in which the device worked."""
        self.measured = begun
        """Time until which figures were queried."""
        self.figured = 0
        """The time of the latest figure that is booked."""
        self.uncertain: dict[tuple[str, str, str], int] = {}
        """Device-seconds by day, pool and resource that were possibly held, beside the rows."""
        self.open: dict[str, Open] = {}
        self.booked: dict[str, tuple[int, int]] = {}
        """Of unfinished Workloads: the admission of the last booked attempt, and the seconds of past ones."""
        self.done: dict[str, None] = {}
        """The latest finished Workloads, which are booked; oldest first."""
        self.unread: dict[str, None] = {}
        """Workloads of which a state could not be read: they are not booked, whatever their version."""
        self.version = 0
        """Version of the Workloads whose changes until then are booked; 0: of none."""
        self.projects: dict[str, str] = {}
        """The named projects: the month of their last use."""
        self.notes: list[Note] = []
        self.noted = 0
        """Number of notes added by this process."""
        self.archived: dict[str, int] = {}
        """Months with an archive, which has the rows of past days: its number."""
        self.sums: dict[Key, tuple[int, int, int, int]] = {}
        """Amounts of the archived days of this month and the last; the day of a key is the month."""
        self.terms: dict[str, Any] = {}
        """Prices and budget of the configuration at the last booking."""
        self.warned: dict[str, int] = {}
        """By month and budget: the last percentage of a warning."""

    def observe(self, seen: Seen, now: int, *, watched: bool) -> bool:
        """Book the state of a Workload; returns whether that changed the book.

        `watched`: no change was missed since its last observation.
        """
        key, before = digest(seen.uid), self.open.get(seen.uid)
        if before is None and self._is_past(seen, key):
            return False
        known, unread = self.booked.get(key), key in self.unread
        self._observe(seen, now, watched=watched)
        self.unread.pop(key, None)
        if seen.finished is not None and seen.asked:
            self.booked.pop(key, None)
            self.done[key] = None
            while len(self.done) > MOST_DONE:
                del self.done[next(iter(self.done))]
            return True
        return unread or self.open.get(seen.uid) is not before or self.booked.get(key) != known

    def unreadable(self, uid: str) -> bool:
        """A state of a Workload could not be read; returns whether that changed the book."""
        key = digest(uid)
        if key in self.done or key in self.unread:
            return False
        self.unread[key] = None
        if len(self.unread) > MOST_DONE:
            del self.unread[next(iter(self.unread))]
        return True

    def _is_past(self, seen: Seen, key: str) -> bool:
        """Return whether a Workload is finished and booked.

        A finished one may change: an upgrade of Kueue writes all of them, and its deletion takes two writes.
        """
        if key in self.done:
            return True
        if seen.finished is None or not self.version or key in self.unread:
            return False
        return seen.version <= self.version or seen.finished < self.seen - _PAST_S

    def project(self, seen: Seen) -> str:
        """The project that the hours of a Workload are booked for."""
        if seen.uid in self.open:
            return self.open[seen.uid].project
        free = len(self.projects) < MOST_PROJECTS
        return seen.project if free or seen.project in self.projects else OTHER_PROJECT

    def _observe(self, seen: Seen, now: int, *, watched: bool) -> None:
        attempt = self.open.get(seen.uid)
        if attempt and attempt.admitted != seen.admitted:
            self._ended_unwatched(seen.uid, attempt, seen)
            attempt = None
        admitted, past_s = self.booked.get(digest(seen.uid), (None, 0))
        if attempt is None and seen.past_s > past_s:
            self._missed(seen, seen.past_s - past_s)
            if seen.admitted is None or seen.admitted == admitted:
                self.booked[digest(seen.uid)] = (admitted or 0, seen.past_s)
        if seen.admitted is None or seen.admitted == admitted or not seen.asked:
            return
        end = seen.finished
        if attempt is None:
            attempt = entries.begun(seen, self.project(seen))
            self._use(attempt, seen.admitted)
        attempt = self._advanced(attempt, seen, now if end is None else end, watched=watched)
        if end is None:
            self.open[seen.uid] = attempt
        else:
            self._close(seen.uid, attempt, end, seen.past_s)

    def deleted(self, uid: str, at: int) -> bool:
        """A Workload was deleted at that time, after its last state was observed.

        Returns whether that changed the book.
        """
        was_open = uid in self.open
        if was_open:
            self._close(uid, self.open[uid], at, 0)
        self.unread.pop(digest(uid), None)
        return self.booked.pop(digest(uid), None) is not None or was_open

    def vanished(self, uid: str, now: int) -> None:
        """Close an open attempt whose Workload is gone, deleted at an unknown time.

        The time until the last observation is booked. The rest is uncertain: until now, or until Kueue would
        have ended it.
        """
        attempt = self.open[uid]
        known = max(attempt.since, self.seen)
        may = attempt.may_take_s(known, now)
        self._uncertain(attempt.shares, known, known + (max(0, now - known) if may is None else may))
        self.note(Note(now, "uncertain", attempt.name, "was deleted unobserved"))
        self._close(uid, attempt, known, 0)
        self.booked.pop(digest(uid), None)

    def measure(self, found: Mapping[Key, tuple[int, int]], until: int, latest: int = 0) -> None:
        """Book device activity until `until`; `latest`: time of the latest figure, 0 for none."""
        for key, more in found.items():
            self.uses[key] = added(self.uses.get(key, (0, 0)), more)
        self.measured, self.figured = until, max(self.figured, latest)

    def look_back(self, now: int) -> None:
        """Query again the period that was queried too early because a clock was ahead of `now`.

        Never a period with booked figures, whichever clock is right.
        """
        if self.measured > now:
            self.measured = min(self.measured, self.figured)

    def note(self, note: Note) -> None:
        """Add a line to the audit trail."""
        cut = replace(note, who=note.who[:MOST_LETTERS], why=note.why[:MOST_LETTERS])
        self.notes = [*self.notes[-MOST_NOTES + 1 :], cut]
        self.noted += 1

    def since(self, noted: int) -> list[Note]:
        """The lines that this process added after the first `noted`."""
        return self.notes[len(self.notes) - min(self.noted - noted, len(self.notes)) :]

    def clock_jumped(self, now: int, jumped_s: int) -> None:
        """Continue with the API server's changed clock."""
        self.seen = now
        self.note(Note(now, "clock", "API server", f"its clock jumped by {jumped_s} s"))

    def bound(self, version: int, now: int) -> None:
        """Correct a book whose server had been further than `version`, as after a restored etcd.

        `done` and the time of their end then show which finished Workloads are booked.
        """
        if self.version > version:
            self.note(Note(now, "clock", "API server", f"its version {version} is before {self.version}"))
            self.version = 1
        if self.seen > now + LATE_S:
            self.clock_jumped(now, now - self.seen)

    def forget(self, existing: Iterable[str]) -> None:
        """Forget bookings of Workloads other than those with these UIDs: they cannot be observed again."""
        kept = {digest(uid) for uid in existing}
        self.booked = {key: value for key, value in self.booked.items() if key in kept}
        self.unread = {key: None for key in self.unread if key in kept}

    def totals(self, month: str = "") -> list[LedgerRow]:
        """The rows that are not archived, with open attempts until their last observation, in order.

        `month`: only of one such as 2026-11.
        """
        found = dict(self.rows)
        for attempt in self.open.values():
            entries.add(found, attempt, self.seen)
        return self._listed(found, month)

    def of_month(self, month: str) -> list[LedgerRow]:
        """All hours of this month or the last; those of archived days are in rows whose day is the month."""
        past = [LedgerRow(*key, *amounts) for key, amounts in self.sums.items() if key[0] == month]
        return [*past, *self.totals(month)]

    def advance(self, until: int) -> None:
        """Book open attempts until a time that is long past, so that rows of earlier days are complete."""
        for uid, attempt in self.open.items():
            self._use(attempt, until)
            if attempt.since < until:
                self.open[uid] = self._booked(attempt, until)

    def before(self, day: str) -> tuple[list[LedgerRow], list[Uncertain]]:
        """The rows and uncertain amounts of days before one such as 2026-11-25, without open attempts."""
        rows = [row for row in self._listed(self.rows, "") if row.day < day]
        return rows, [(*key, amount) for key, amount in sorted(self.uncertain.items()) if key[0] < day]

    def archive(self, day: str) -> None:
        """Remove what is `before` a day: it is in the next archives of its months."""
        rows, uncertain = self.before(day)
        last = month_before(day[:7])
        totals = [LedgerRow(*key, *amounts) for key, amounts in self.sums.items()]
        totals = merged([*totals, *(replace(row, day=row.day[:7]) for row in rows)])
        self.sums = {row.key: row.amounts for row in totals if row.day >= last}
        for month in {row.day[:7] for row in rows} | {key[0][:7] for key in uncertain}:
            self.archived[month] = self.archived.get(month, 0) + 1
        self.rows = {key: amounts for key, amounts in self.rows.items() if key[0] >= day}
        self.uses = {key: amounts for key, amounts in self.uses.items() if key[0] >= day}
        self.uncertain = {key: amount for key, amount in self.uncertain.items() if key[0] >= day}
        self.projects = {name: used for name, used in self.projects.items() if used >= last}
        self.warned = {key: passed for key, passed in self.warned.items() if key[:7] >= last}

    # --------------------------------------------------------------------------------------------------

    def _listed(self, rows: Mapping[Key, tuple[int, int]], month: str) -> list[LedgerRow]:
        keys = sorted(key for key in rows.keys() | self.uses.keys() if key[0].startswith(month))
        return [LedgerRow(*key, *rows.get(key, (0, 0)), *self.uses.get(key, (0, 0))) for key in keys]

    def _ended_unwatched(self, uid: str, attempt: Open, seen: Seen) -> None:
        """The attempt lost its admission. Kueue has counted its seconds, whole ones from its admission.

        Several unobserved attempts are booked as if the first had lasted that long. Kueue resets its count
        when it ends a Workload for its time limit: then the condition has the time.
        """
        counted = seen.past_s - attempt.past_s
        if counted > 0:
            end = attempt.admitted + counted
        elif seen.released is not None:
            end = seen.released
        else:
            end = max(attempt.since, min(self.seen, seen.admitted or self.seen))
            self._uncertain(attempt.shares, end, seen.admitted or end)
            self.note(Note(end, "uncertain", attempt.name, "ended and began again unobserved"))
        self._close(uid, attempt, end, seen.past_s)

    def _missed(self, seen: Seen, missed_s: int) -> None:
        """Attempts that were not observed; those before this book began are ignored."""
        if seen.created < self.begun or not seen.asked:
            return
        self._uncertain(seen.asked, self.seen - missed_s, self.seen)
        self.note(Note(self.seen, "uncertain", seen.name, f"{missed_s} s of unobserved attempts"))

    def _advanced(self, attempt: Open, seen: Seen, now: int, *, watched: bool) -> Open:
        """The attempt with the current state of its pods: ready or not, done or not."""
        if attempt.ready is not None and seen.ready is None:
            attempt = self._stopped(attempt, seen.unready or now)
        # A condition that is older than the admission is of an earlier attempt.
        if seen.ready is not None and seen.ready >= seen.admitted:  # type: ignore[operator]  # it is admitted
            if attempt.ready is not None and seen.ready > attempt.ready and seen.ready > attempt.since:
                attempt = self._stopped(attempt, min(max(self.seen, attempt.ready), seen.ready))
            if attempt.ready is None:
                attempt = replace(attempt, ready=max(seen.ready, attempt.since))
        if seen.shares == attempt.shares:
            return attempt
        # Pods that are done have the time of their report; an elastic job that is scaled down has none.
        reported = seen.changed if seen.done > attempt.done else None
        at = min(max(now if reported is None else reported, attempt.since), max(now + LATE_S, attempt.since))
        exact = watched or (reported is not None and seen.done - attempt.done <= 1)
        sure = at if exact else min(max(self.seen, attempt.since), at)
        attempt = self._booked(attempt, sure)
        # Pods that were done one after the other, at unobserved times.
        less = {key: amount - seen.shares.get(key, 0) for key, amount in attempt.shares.items()}
        self._uncertain(less, sure, at)
        return self._booked(replace(attempt, shares=seen.shares, done=seen.done), at)

    def _stopped(self, attempt: Open, at: int) -> Open:
        """Book the running time; the devices are still held."""
        start = attempt.ready
        if start is not None:
            for day, since, until in days(start, at):
                for (pool, resource), amount in attempt.shares.items():
                    self._row((day, attempt.project, pool, resource), 0, amount * (until - since))
        return replace(attempt, ready=None)

    def _booked(self, attempt: Open, until: int) -> Open:
        """Book the attempt until then."""
        entries.add(self.rows, attempt, until)
        ready = None if attempt.ready is None else max(attempt.ready, until)
        return replace(attempt, since=max(attempt.since, until), ready=ready)

    def _close(self, uid: str, attempt: Open, end: int, past_s: int) -> None:
        if end < attempt.since:
            lost = attempt.since - end
            self._uncertain(attempt.shares, end, attempt.since)
            self.note(Note(end, "clock", attempt.name, f"ended {lost} s before it was last booked"))
        self._booked(attempt, end)
        self.open.pop(uid, None)
        self.booked[digest(uid)] = (attempt.admitted, past_s)

    def _use(self, attempt: Open, at: int) -> None:
        """Note the use of a project: without one in this month or the last, another gets its place."""
        if attempt.project in self.projects or len(self.projects) < MOST_PROJECTS:
            self.projects[attempt.project] = max(stamp(at)[:7], self.projects.get(attempt.project, ""))

    def _row(self, key: Key, held_s: int, running_s: int) -> None:
        self.rows[key] = added(self.rows.get(key, (0, 0)), (held_s, running_s))

    def _uncertain(self, shares: Shares, start: int, end: int) -> None:
        for day, since, until in days(start, end):
            for (pool, resource), amount in shares.items():
                if amount > 0:
                    key = (day, pool, resource)
                    self.uncertain[key] = self.uncertain.get(key, 0) + amount * (until - since)


def month_before(month: str) -> str:
    """The month before one such as 2026-11."""
    year, number = int(month[:4]), int(month[5:])
    return f"{year - (number == 1)}-{(number - 2) % 12 + 1:02d}"
