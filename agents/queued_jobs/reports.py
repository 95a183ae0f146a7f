"""Events on jobs with the reason why they do not start; standard library only.

Kueue writes its reasons, and its Events about them, on Workloads, which members do not know. An Event has a
name by job and kind of reason, so there is at most one of each, with a count. Events are few: each after a
while, the total with a bound, and one namespace after the other, so that no team delays those of another.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.queued_jobs.reasons import Kind, Reason, of_workload
from agents.queued_jobs.turns import Turns
from agents.shared.api_server import UNREADABLE, ApiServer, say
from agents.shared.events import MOST_LETTERS, event

# Jobs that start within this time get no Event.
SETTLED_S = 10.0
# While a reason lasts, its Event is repeated: the API server deletes it an hour after its last change
# (kubernetes v1.36.2 cmd/kube-apiserver/app/options, `--event-ttl`).
REPEAT_S = 3000.0
# A reason that comes back after another one, and a write that failed, are repeated after this time.
AGAIN_S = 600.0
# Writes: this many at once, then one in this time.
BURST, EACH_S = 20, 5.0
# A group of pods is one Workload of all of them.
_MOST_OWNERS = 8
_SOURCE = "trainstack-queue"
_NOT_FOUND, _CONFLICT = 404, 409

Object = Mapping[str, Any]


@dataclass
class _Queued:
    """An object that a member created, with the reason why it does not start."""

    namespace: str
    owner: Object
    reason: Reason | None
    due_at: float
    """The time of the next Event."""
    sent: dict[Kind, float] = field(default_factory=dict)
    """Time of the last Event of each kind of reason."""
    counts: dict[str, int] = field(default_factory=dict)
    """Known counts, by the name of the Event."""

    def due(self, at: float) -> bool:
        return self.reason is not None and at >= self.due_at

    @property
    def repeats(self) -> bool:
        return self.reason is not None and self.reason.kind in self.sent


class Reports:
    """The Events of all jobs that do not start. Times `at` are of a clock that never goes back."""

    def __init__(self, server: ApiServer, log: Callable[[str], None] = say) -> None:
        self._server, self._log = server, log
        self._jobs: dict[str, list[_Queued]] = {}
        """By the UID of the Workload, else of the job: the objects that it is about."""
        self._turns = Turns(BURST, EACH_S)

    def observe(self, workload: Object, now: int, at: float) -> None:
        """Take the current state of a Workload; `now`: the API server's time."""
        head = workload["metadata"]
        owners = (head.get("ownerReferences") or ())[:_MOST_OWNERS]
        self.take(head["uid"], head["namespace"], owners, of_workload(workload, now), now=now, at=at)

    def take(
        self,
        uid: str,
        namespace: str,
        owners: Sequence[Object],
        reason: Reason | None,
        *,
        now: int,
        at: float,
    ) -> None:
        """Take the reason why objects do not start; None where they do."""
        known = self._jobs.get(uid)
        if known is None:
            if reason is not None:
                due_at = at + _wait(reason, now)
                self._jobs[uid] = [_Queued(namespace, owner, reason, due_at) for owner in owners]
            return
        if reason is None and not any(one.sent for one in known):
            self.gone(uid)
            return
        for one in known:
            if reason and (one.reason is None or _key(reason) != _key(one.reason)):
                before = one.sent.get(reason.kind, -AGAIN_S)
                one.due_at = max(at + _wait(reason, now), before + AGAIN_S)
            one.reason = reason

    @property
    def waiting(self) -> int:
        """Number of jobs that are remembered."""
        return len(self._jobs)

    def gone(self, uid: str) -> None:
        """Forget a job that is finished or deleted."""
        self._jobs.pop(uid, None)

    def only(self, namespace: str, existing: Collection[str]) -> None:
        """Forget the jobs of a namespace that do not exist any more."""
        for uid in [uid for uid, rows in self._jobs.items() if rows and rows[0].namespace == namespace]:
            if uid not in existing:
                self.gone(uid)

    def send(self, now: int, at: float) -> None:
        """Write the Events that are due, as far as the bound allows. Raises OSError."""
        due: dict[str, list[_Queued]] = {}
        for rows in self._jobs.values():
            for one in rows:
                if one.due(at):
                    due.setdefault(one.namespace, []).append(one)
        for rows in due.values():
            # Taken from the end: new reasons before repeated ones, the oldest first.
            rows.sort(key=lambda one: (one.repeats, one.due_at), reverse=True)
        self._turns.take(due, lambda one: self._report(one, now, at), at)

    def _report(self, one: _Queued, now: int, at: float) -> None:
        assert one.reason is not None
        one.sent[one.reason.kind] = at
        one.due_at = at + AGAIN_S
        try:
            if self._write(one, one.reason, one.owner, now):
                one.due_at = at + REPEAT_S
        except UNREADABLE as error:
            self._log(f"no event in {one.namespace}: {error!r}")

    def _write(self, job: _Queued, reason: Reason, owner: Object, now: int) -> bool:
        """Create or repeat one Event; it is for members, so a refusal stops nothing else."""
        words = _words(reason, owner)
        name = _name(owner, reason.kind)
        path = f"/api/v1/namespaces/{job.namespace}/events"
        body = event(
            owner, job.namespace, name=name, reason=_reason(reason.kind), words=words,
            kind="Warning" if reason.fix else "Normal", by=_SOURCE, at=now,
        )  # fmt: skip
        status, found = (_NOT_FOUND, {}) if name not in job.counts else self._repeat(path, job, name, body)
        if status == _NOT_FOUND:
            self._turns.spend()
            status, found = self._server.ask("POST", path, body)
            if status == _CONFLICT:
                # Of an earlier process.
                status, found = self._repeat(path, job, name, body)
        if status >= 300:
            self._log(f"no event {body['reason']} in {job.namespace}: {status} {found.get('message')}")
            return False
        job.counts[name] = int(found.get("count") or 1)
        return True

    def _repeat(self, path: str, job: _Queued, name: str, body: Object) -> tuple[int, Object]:
        self._turns.spend()
        change = {key: body[key] for key in ("message", "type", "lastTimestamp")}
        if name in job.counts:
            change["count"] = job.counts[name] + 1
        return self._server.ask("PATCH", f"{path}/{name}", change)


def _key(reason: Reason) -> tuple[Kind, int]:
    """Identity of a reason; another text alone makes no other one."""
    return reason.kind, reason.begins


def _wait(reason: Reason, now: int) -> float:
    """Seconds until the first Event of a reason."""
    return max(SETTLED_S, float(reason.begins - now))


def _words(reason: Reason, owner: Object) -> str:
    """The line of a reason. A text that is too long is cut, the fix is not."""
    given = str(owner["kind"]), str(owner["name"])
    over = len(reason.words(*given)) - MOST_LETTERS
    if over > 0:
        reason = replace(reason, text=f"{reason.text[: -over - 3]}...")
    return reason.words(*given)


def _name(owner: Object, kind: Kind) -> str:
    digest = hashlib.sha256(f"{owner['uid']} {kind}".encode()).hexdigest()[:16]
    return f"{str(owner['name'])[:200].rstrip('-.')}.{digest}"


def _reason(kind: Kind) -> str:
    """The kind as the reason of an Event, such as `NeverFits`."""
    return "".join(word.capitalize() for word in kind.split())
