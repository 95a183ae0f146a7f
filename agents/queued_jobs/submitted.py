"""Jobs of members that have not ended, with the label that asks for a retry; standard library only.

Kueue copies a label to a Workload when it creates that, not later, and writes nothing on a job for which it
creates none (kubernetes-sigs/kueue#3439). One list of each kind, then short watches for what changed since:
requests do not grow with the number of teams, nor with finished jobs.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.queued_jobs.reasons import RETRYABLE, Reason, of_unprocessed
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError, say
from agents.shared.jobs import controller, path
from agents.shared.kueue import API, INTERNAL_LABEL, PRIORITY_LABEL, RETRY_LABEL
from agents.shared.times import seconds

# Duration of a watch: what is known by then is sent at once, and other work of the process waits.
WATCH_S = 1.0
# Kueue creates a Workload in a second; after a flood of jobs, or a restart, in minutes.
LATE_S, UNPROCESSED_S = 10, 300
# A class that is unknown stays so for minutes: Kueue waits ever longer, too, before it looks again.
CLASSES_S = 600
_GONE = 410

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job that a member, or a CronJob, created."""

    namespace: str
    owner: Object
    """The reference to it: apiVersion, kind, name, uid."""
    created: int
    suspended: bool
    retry: str
    """Its label that asks for a retry; empty without one."""
    priority: str
    """The class that its label names; empty without one."""


class SubmittedJobs:
    """The unfinished jobs of all teams."""

    def __init__(
        self, server: ApiServer, namespaces: Collection[str], log: Callable[[str], None] = say
    ) -> None:
        self._server, self._namespaces, self._log = server, namespaces, log
        self._kinds = [*RETRYABLE]
        self._versions: dict[str, str] = {}
        """Of the last change of each kind that was read."""
        self._jobs: dict[str, SubmittedJob] = {}
        """By their UID."""
        self._owners: dict[str, tuple[str, list[str]]] = {}
        """Namespace of each Workload, and the UIDs of its owners."""
        self._complained: dict[str, str] = {}
        self._classes: dict[str, bool] | None = None
        self._classes_at = 0

    def retry(self, uid: str) -> str:
        """The label of a job that asks for a retry; empty without one."""
        return self._jobs[uid].retry if uid in self._jobs else ""

    def observe(self, workload: Object) -> None:
        """Note that a job has a Workload."""
        head = workload["metadata"]
        owners = [str(row.get("uid")) for row in head.get("ownerReferences") or ()]
        self._owners[head["uid"]] = head["namespace"], owners

    def gone(self, uid: str) -> None:
        """Forget a Workload that was deleted."""
        self._owners.pop(uid, None)

    def only(self, namespace: str, existing: Collection[str]) -> None:
        """Forget the Workloads of a namespace that do not exist any more."""
        for uid in [uid for uid, (space, _) in self._owners.items() if space == namespace]:
            if uid not in existing:
                self.gone(uid)

    def poll(self) -> None:
        """Read what changed of one kind, each time of the next one. Raises OSError."""
        kind = self._kinds.pop(0)
        self._kinds.append(kind)
        try:
            if kind in self._versions:
                self._follow(kind)
            else:
                self._list(kind)
            self._complained.pop(kind, None)
        except ApiServerError as error:
            if error.status == _GONE:
                self._versions.pop(kind, None)
            # 404 for a kind that is not installed.
            elif self._complained.get(kind) != str(error):
                self._complained[kind] = str(error)
                self._log(f"no {kind}s are read: {error}")

    def unprocessed(self, namespaces: Collection[str], now: int) -> Iterator[tuple[SubmittedJob, Reason]]:
        """The jobs that are suspended for want of a Workload, in namespaces whose Workloads are all known."""
        owned = {uid for _, owners in self._owners.values() for uid in owners}
        late = [
            job
            for uid, job in self._jobs.items()
            if job.suspended and uid not in owned and job.namespace in namespaces
            if now - job.created >= LATE_S
        ]
        if any(job.priority for job in late) and abs(now - self._classes_at) >= CLASSES_S:
            self._classes, self._classes_at = self._read_classes(), now
        for job in late:
            found = of_unprocessed(job.priority, self._classes)
            if found.kind != "not processed" or now - job.created >= UNPROCESSED_S:
                yield job, found

    # --------------------------------------------------------------------------------------------------

    def _list(self, kind: str) -> None:
        found: dict[str, SubmittedJob] = {}
        version = ""
        for page, at in self._server.paged(path(kind)):
            version = version or at
            for body in page:
                if job := self._read(kind, body):
                    found[body["metadata"]["uid"]] = job
        others = {uid: job for uid, job in self._jobs.items() if job.owner["kind"] != kind}
        self._jobs = {**others, **found}
        self._versions[kind] = version

    def _follow(self, kind: str) -> None:
        for change in self._server.watched(path(kind), self._versions[kind], WATCH_S):
            body, head = change["object"], change["object"]["metadata"]
            if change["type"] != "BOOKMARK":
                job = self._read(kind, body) if change["type"] != "DELETED" else None
                if job:
                    self._jobs[head["uid"]] = job
                else:
                    self._jobs.pop(head["uid"], None)
            self._versions[kind] = str(head["resourceVersion"])

    def _read(self, kind: str, body: Object) -> SubmittedJob | None:
        """The job; None for one in another form, too."""
        try:
            return self._job(kind, body)
        except UNREADABLE as error:
            self._log(f"{kind} {(body.get('metadata') or {}).get('name')}: unreadable: {error!r}")
            return None

    def _job(self, kind: str, body: Object) -> SubmittedJob | None:
        """The job; None for a part of another one, one that ended, and one that belongs to no team."""
        head, spec = body["metadata"], body.get("spec") or {}
        rows = (body.get("status") or {}).get("conditions") or ()
        ended = any(row["type"] in _ENDED and row["status"] == "True" for row in rows)
        if head["namespace"] not in self._namespaces or ended or controller(head):
            return None
        labels = head.get("labels") or {}
        return SubmittedJob(
            namespace=head["namespace"],
            owner={
                # Items of a list have neither.
                "apiVersion": path(kind).removeprefix("/apis/").rpartition("/")[0],
                "kind": kind,
                "name": head["name"],
                "uid": head["uid"],
            },
            created=seconds(head["creationTimestamp"]),
            suspended=bool(spec.get("suspend")) and not head.get("deletionTimestamp"),
            retry=str(labels.get(RETRY_LABEL) or ""),
            priority=str(labels.get(PRIORITY_LABEL) or ""),
        )

    def _read_classes(self) -> dict[str, bool] | None:
        """All priority classes, the highest first, as `of_unprocessed`; None where they cannot be read."""
        try:
            rows = [*self._server.every(f"{API}/workloadpriorityclasses")]
        except ApiServerError as error:
            self._log(f"no priority classes are read: {error}")
            return None
        heads = [row["metadata"] for row in sorted(rows, key=lambda row: -row["value"])]
        return {str(head["name"]): INTERNAL_LABEL not in (head.get("labels") or {}) for head in heads}


# Conditions of a Job and a TrainJob, and of a JobSet.
_ENDED = ("Complete", "Completed", "Failed")
