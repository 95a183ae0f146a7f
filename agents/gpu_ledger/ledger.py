"""The book of a team: GPU-seconds that it held, and which of them are uncertain. Pure; runs in a pod.

A book is a function of the states of Workloads, independent of how often they are read: rows are closed, an
open attempt has the time until which it is booked, and the last booking is kept for as long as its Workload
exists. So it may be written at any time, read again after a crash, and observe the same states of Workloads
again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.gpu_ledger.attempts import Seen, Shares, days
from agents.gpu_ledger.row import Key, LedgerRow

SCHEMA = "trainstack.ledger/1"
# Only the latest are kept: a ConfigMap holds 1 MiB (k8s.io/api core/v1, `MaxSecretSize`).
MOST_NOTES = 300
# The API server's clock is read from a header with whole seconds: it may be late by as much.
LATE_S = 1


@dataclass(frozen=True)
class Open:
    """An attempt that is running."""

    name: str
    project: str
    admitted: int
    since: int
    """It is booked until this time."""
    ready: int | None
    """Since when its pods are ready, in the part that is not booked yet."""
    shares: Shares
    done: int
    past_s: int
    left_s: int | None
    """Seconds from its admission after which Kueue ends it."""

    def may_take_s(self, now: int, until: int) -> int | None:
        """Most seconds that it may run before `until`; None without a limit."""
        return None if self.left_s is None else max(0, min(self.admitted + self.left_s, until) - now)


@dataclass(frozen=True)
class Note:
    """One line of the audit trail."""

    at: int
    what: str
    """held, started, exempt, warned, clock, uncertain."""
    who: str
    """A Workload, or a budget."""
    why: str


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
        """By Workload: the admission of its last booked attempt, and the seconds of all its past ones."""
        self.notes: list[Note] = []
        self.noted = 0
        """Number of notes added by this process."""
        self.archived: list[str] = []
        """Months whose rows are in a book of their own."""
        self.terms: dict[str, Any] = {}
        """Prices and budget of the configuration at the last booking."""
        self.warned: dict[str, int] = {}
        """By month and budget: the last percentage of a warning."""

    def observe(self, seen: Seen, now: int, *, watched: bool) -> None:
        """Book the state of a Workload. `watched`: no change was missed since its last observation."""
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
        attempt = self._advanced(attempt or _begun(seen), seen, now if end is None else end, watched=watched)
        if end is None:
            self.open[seen.uid] = attempt
        else:
            self._close(seen.uid, attempt, end, seen.past_s)

    def deleted(self, uid: str, at: int) -> None:
        """A Workload was deleted at that time, after its last state was observed."""
        if uid in self.open:
            self._close(uid, self.open[uid], at, 0)
        self.booked.pop(digest(uid), None)

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
        for key, (more, work) in found.items():
            measured, used = self.uses.get(key, (0, 0))
            self.uses[key] = (measured + more, used + work)
        self.measured, self.figured = until, max(self.figured, latest)

    def look_back(self, now: int) -> None:
        """Query again the period that was queried too early because a clock was ahead of `now`.

        Never a period with booked figures, whichever clock is right.
        """
        if self.measured > now:
            self.measured = min(self.measured, self.figured)

    def note(self, note: Note) -> None:
        """Add a line to the audit trail."""
        self.notes = [*self.notes[-MOST_NOTES + 1 :], note]
        self.noted += 1

    def since(self, noted: int) -> list[Note]:
        """The lines that this process added after the first `noted`."""
        return self.notes[len(self.notes) - min(self.noted - noted, len(self.notes)) :]

    def clock_jumped(self, now: int, jumped_s: int) -> None:
        """Continue with the API server's changed clock."""
        self.seen = now
        self.note(Note(now, "clock", "API server", f"its clock jumped by {jumped_s} s"))

    def forget(self, existing: Iterable[str]) -> None:
        """Forget bookings of Workloads other than those with these UIDs: they cannot be observed again."""
        kept = {digest(uid) for uid in existing}
        self.booked = {key: value for key, value in self.booked.items() if key in kept}

    def totals(self, month: str = "") -> list[LedgerRow]:
        """All rows of a month such as 2026-11, in order, with open attempts until their last observation."""
        found = dict(self.rows)
        for attempt in self.open.values():
            _add(found, attempt, self.seen)
        return self._listed(found, month)

    def over(self, month: str) -> list[LedgerRow]:
        """The rows of a month, without open attempts."""
        return self._listed(self.rows, month)

    def take(self, month: str) -> None:
        """Remove the rows of a month, as `over` returns them: they are archived."""
        self.rows = {key: amounts for key, amounts in self.rows.items() if not key[0].startswith(month)}
        self.uses = {key: amounts for key, amounts in self.uses.items() if not key[0].startswith(month)}
        self.archived.append(month)

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
        at = min(
            max(now if seen.changed is None else seen.changed, attempt.since),
            max(now + LATE_S, attempt.since),
        )
        sure = at if watched or seen.done - attempt.done <= 1 else min(max(self.seen, attempt.since), at)
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
        _add(self.rows, attempt, until)
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

    def _row(self, key: Key, held_s: int, running_s: int) -> None:
        held, running = self.rows.get(key, (0, 0))
        self.rows[key] = (held + held_s, running + running_s)

    def _uncertain(self, shares: Shares, start: int, end: int) -> None:
        for day, since, until in days(start, end):
            for (pool, resource), amount in shares.items():
                if amount > 0:
                    key = (day, pool, resource)
                    self.uncertain[key] = self.uncertain.get(key, 0) + amount * (until - since)

    # --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The book as JSON, the same for the same contents."""
        body: dict[str, Any] = {
            "schema": SCHEMA,
            "team": self.team,
            "begun": self.begun,
            "seen": self.seen,
            "rows": [[*key, *amounts] for key, amounts in sorted(self.rows.items())],
            "uses": [[*key, *amounts] for key, amounts in sorted(self.uses.items())],
            "measured": self.measured,
            "figured": self.figured,
            "uncertain": [[*key, amount] for key, amount in sorted(self.uncertain.items())],
            "open": {uid: _plain(attempt) for uid, attempt in sorted(self.open.items())},
            "booked": {key: list(value) for key, value in sorted(self.booked.items())},
            "notes": [[note.at, note.what, note.who, note.why] for note in self.notes],
            "archived": self.archived,
            "warned": self.warned,
            "terms": self.terms,
        }
        return json.dumps(body, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "TeamBook":
        """The book in a text. Raises ValueError for one of another schema."""
        body = json.loads(text)
        if body.get("schema") != SCHEMA:
            raise ValueError(f"is of schema {body.get('schema')}, not {SCHEMA}")
        book = cls(body["team"], body["begun"])
        book.seen = body["seen"]
        book.rows = {(day, *rest): (held, ran) for day, *rest, held, ran in body["rows"]}
        # Books written before figures existed have none.
        book.uses = {(day, *rest): (measured, used) for day, *rest, measured, used in body.get("uses", ())}
        book.measured, book.figured = body.get("measured", body["seen"]), body.get("figured", 0)
        book.uncertain = {(day, pool, resource): left for day, pool, resource, left in body["uncertain"]}
        book.open = {uid: _open(row) for uid, row in body["open"].items()}
        book.booked = {key: (admitted, past_s) for key, (admitted, past_s) in body["booked"].items()}
        book.notes = [Note(*row) for row in body["notes"]]
        book.archived, book.warned = list(body["archived"]), dict(body["warned"])
        book.terms = body["terms"]
        return book


def digest(uid: str) -> str:
    """A short name of a Workload: ten thousand of them have one in common with a chance of 1 : 20,000."""
    return hashlib.sha256(uid.encode()).hexdigest()[:10]


def _begun(seen: Seen) -> Open:
    assert seen.admitted is not None
    return Open(
        name=seen.name,
        project=seen.project,
        admitted=seen.admitted,
        since=seen.admitted,
        ready=None,
        shares=seen.asked,
        done=0,
        past_s=seen.past_s,
        left_s=seen.left_s,
    )


def _add(rows: dict[Key, tuple[int, int]], attempt: Open, until: int) -> None:
    """Add the held devices of an attempt since its last booking."""
    for day, since, end in days(attempt.since, until):
        ran = 0 if attempt.ready is None else max(0, end - max(since, attempt.ready))
        for (pool, resource), amount in attempt.shares.items():
            held, running = rows.get(key := (day, attempt.project, pool, resource), (0, 0))
            rows[key] = (held + amount * (end - since), running + amount * ran)


def _plain(attempt: Open) -> dict[str, Any]:
    return {
        **{key: value for key, value in vars(attempt).items() if key != "shares"},
        "shares": [[*key, amount] for key, amount in sorted(attempt.shares.items())],
    }


def _open(row: Mapping[str, Any]) -> Open:
    return Open(**{**row, "shares": {(pool, resource): amount for pool, resource, amount in row["shares"]}})
