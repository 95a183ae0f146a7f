"""Start jobs again that were stopped, when a member asks by a label; standard library only.

Members cannot change Workloads. A job that Kueue deactivated, or that held idle GPUs, starts again for each
new value of the label of its Job, JobSet or TrainJob.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.queued_jobs.reasons import DEACTIVATED, deactivated_by_kueue
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.jobs import controller, path
from agents.shared.kueue import API, IDLE, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL

# Labels of the jobs of a namespace are read this often, while any of its jobs is stopped.
EVERY_S = 20.0
# Pods cannot start again.
_KINDS = ("Job", "JobSet", "TrainJob")
_OVERTAKEN = (404, 409)

Object = Mapping[str, Any]


@dataclass(frozen=True)
class _Stopped:
    """The Workload of a stopped job."""

    namespace: str
    name: str
    uid: str
    kind: str
    """Of the job."""
    job: str
    obeyed: str
    """The value of the label that is obeyed already."""
    requeued: Object | None
    """A change of the status without which Kueue keeps the job out of its queue."""


class Retries:
    """The stopped jobs of all teams. Times `at` are of a clock that never goes back."""

    def __init__(self, server: ApiServer, log: Callable[[str], None] = say) -> None:
        self._server, self._log = server, log
        self._stopped: dict[str, _Stopped] = {}
        """By the UID of the Workload."""
        self._read: dict[str, float] = {}

    def observe(self, workload: Object) -> None:
        """Take the current state of a Workload."""
        head, owner = workload["metadata"], controller(workload["metadata"])
        idle = (head.get("labels") or {}).get(STOPPED_LABEL) == IDLE and not workload["spec"].get(
            "active", True
        )
        self.gone(head["uid"])
        if owner and owner["kind"] in _KINDS and (idle or deactivated_by_kueue(workload)):
            obeyed = str((head.get("annotations") or {}).get(RETRIED_NOTE) or "")
            at = head["namespace"], head["name"], head["uid"], owner["kind"], owner["name"]
            self._stopped[head["uid"]] = _Stopped(*at, obeyed, _requeued(workload))

    def gone(self, uid: str) -> None:
        """Forget a Workload that is finished or deleted."""
        self._stopped.pop(uid, None)

    def only(self, namespace: str, existing: set[str]) -> None:
        """Forget the Workloads of a namespace that do not exist any more."""
        for uid in [uid for uid, one in self._stopped.items() if one.namespace == namespace]:
            if uid not in existing:
                self.gone(uid)

    def obey(self, at: float) -> None:
        """Start the jobs again of the namespace whose labels were read longest ago. Raises OSError."""
        spaces = {one.namespace for one in self._stopped.values()}
        due = [name for name in spaces if at >= self._read.get(name, at - EVERY_S) + EVERY_S]
        if not due:
            return
        namespace = min(due, key=lambda name: self._read.get(name, 0.0))
        self._read[namespace] = at
        try:
            self._obey(namespace)
        except ApiServerError as error:
            self._log(f"no retries in {namespace}: {error}")

    def _obey(self, namespace: str) -> None:
        rows = [one for one in self._stopped.values() if one.namespace == namespace]
        for kind in dict.fromkeys(one.kind for one in rows):
            labelled = self._server.every(path(kind, namespace), labelSelector=RETRY_LABEL)
            asked = {
                str(job["metadata"]["name"]): str(job["metadata"]["labels"][RETRY_LABEL]) for job in labelled
            }
            for one in rows:
                wanted = asked.get(one.job, one.obeyed) if one.kind == kind else one.obeyed
                if wanted != one.obeyed:
                    self._activate(one, wanted)

    def _activate(self, one: _Stopped, wanted: str) -> None:
        marks = {
            "uid": one.uid,
            "labels": {STOPPED_LABEL: None},
            "annotations": {RETRIED_NOTE: wanted},
        }
        change = {"spec": {"active": True}, "metadata": marks}
        target = f"{API}/namespaces/{one.namespace}/workloads/{one.name}"
        status, found = self._requeue(one, target)
        if status < 300:
            status, found = self._server.ask("PATCH", target, change)
        if status < 300:
            self.gone(one.uid)
            self._log(f"{one.namespace}/{one.job}: starts again, as its label {RETRY_LABEL} asks")
        elif status not in _OVERTAKEN:
            raise ApiServerError(status, str(found.get("message")))

    def _requeue(self, one: _Stopped, target: str) -> tuple[int, Object]:
        """Let Kueue queue the job; comes first, because an active one is not looked at again."""
        return self._server.ask("PATCH", f"{target}/status", one.requeued) if one.requeued else (200, {})


def _requeued(workload: Object) -> Object | None:
    """The change with which Kueue queues a job again that it deactivated; None where it does so itself.

    Kueue 0.19.2 sets the condition Requeued to False with the reason of the eviction, such as
    `DeactivatedDueToRequeuingLimitExceeded` (pkg/controller/jobframework/reconciler.go), and to True only for
    the reason `Deactivated` (pkg/controller/core/workload_controller.go): a job that is merely active waits
    for ever (pkg/cache/queue/cluster_queue.go, `backoffWaitingTimeExpired`). A merge patch has the whole
    list, so it applies to this version of the Workload.
    """
    rows = [dict(row) for row in workload["status"].get("conditions") or ()]
    for row in rows:
        if row["type"] == "Requeued" and row["status"] == "False" and row["reason"] in DEACTIVATED:
            row |= {"status": "True", "reason": "Reactivated", "message": "A member asked for a retry"}
            head = {"resourceVersion": workload["metadata"]["resourceVersion"]}
            return {"metadata": head, "status": {"conditions": rows}}
    return None
