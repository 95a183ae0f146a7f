"""Events on jobs with the reason why they do not start; standard library only.

Kueue writes its reasons, and its Events about them, on Workloads, which members do not know. An Event has a
name by job and kind of reason, so there is at most one of each, with a count. Events are few: each after a
while, the total with a bound, and one namespace after the other, so that no team delays those of another.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agents.queued_jobs.reasons import Kind, Reason, of_workload
from agents.shared.api_server import ApiServer, say
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
# Other work of the process waits meanwhile.
_LONGEST_S = 10.0
# A group of pods is one Workload of all of them.
_MOST_OWNERS = 8
_SOURCE = "trainstack-queue"
_NOT_FOUND, _CONFLICT = 404, 409

Object = Mapping[str, Any]


@dataclass
class _Queued:
    """A job, with the reason why it does not start."""

    namespace: str
    owners: tuple[Object, ...]
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
        self._jobs: dict[str, _Queued] = {}
        """By the UID of the Workload."""
        self._turns: dict[str, int] = {}
        """Number of the last write in each namespace."""
        self._number = 0
        self._allowance, self._filled = float(BURST), 0.0

    def observe(self, workload: Object, now: int, at: float) -> None:
        """Take the current state of a Workload; `now`: the API server's time."""
        head = workload["metadata"]
        uid, reason = head["uid"], of_workload(workload, now)
        known = self._jobs.get(uid)
        if known is None:
            if reason is not None:
                owners = tuple((head.get("ownerReferences") or ())[:_MOST_OWNERS])
                self._jobs[uid] = _Queued(head["namespace"], owners, reason, at + _wait(reason, now))
            return
        if reason is None and not known.sent:
            self.gone(uid)
            return
        if reason and (known.reason is None or _key(reason) != _key(known.reason)):
            before = known.sent.get(reason.kind, -AGAIN_S)
            known.due_at = max(at + _wait(reason, now), before + AGAIN_S)
        known.reason = reason

    @property
    def waiting(self) -> int:
        """Number of jobs that are remembered."""
        return len(self._jobs)

    def gone(self, uid: str) -> None:
        """Forget a Workload that is finished or deleted."""
        self._jobs.pop(uid, None)

    def only(self, namespace: str, existing: set[str]) -> None:
        """Forget the Workloads of a namespace that do not exist any more."""
        for uid in [uid for uid, job in self._jobs.items() if job.namespace == namespace]:
            if uid not in existing:
                self.gone(uid)

    def send(self, now: int, at: float) -> None:
        """Write the Events that are due, as far as the bound allows. Raises OSError."""
        self._allowance = min(float(BURST), self._allowance + (at - self._filled) / EACH_S)
        self._filled = at
        due: dict[str, list[_Queued]] = {}
        for job in self._jobs.values():
            if job.due(at):
                due.setdefault(job.namespace, []).append(job)
        for jobs in due.values():
            # Taken from the end: new reasons before repeated ones, the oldest first.
            jobs.sort(key=lambda job: (job.repeats, job.due_at), reverse=True)
        until = time.monotonic() + _LONGEST_S
        while due and self._allowance >= 1 and time.monotonic() < until:
            namespace = min(due, key=lambda name: self._turns.get(name, 0))
            job = due[namespace].pop()
            if not due[namespace]:
                del due[namespace]
            self._number += 1
            self._turns[namespace] = self._number
            self._report(job, now, at)

    def _report(self, job: _Queued, now: int, at: float) -> None:
        assert job.reason is not None
        written = [self._write(job, job.reason, owner, now) for owner in job.owners]
        job.sent[job.reason.kind] = at
        job.due_at = at + (REPEAT_S if all(written) else AGAIN_S)

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
            self._allowance -= 1
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
        self._allowance -= 1
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
