"""Start jobs again that were stopped, when a member asks by a label; standard library only.

Members cannot change Workloads. A job that Kueue deactivated, or that held idle GPUs, starts again for each
new value of the label of its Job, JobSet or TrainJob.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agents.queued_jobs.reasons import DEACTIVATED, RETRYABLE, deactivated_by_kueue
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError, say
from agents.shared.jobs import controller
from agents.shared.kueue import API, IDLE, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL
from agents.shared.times import stamp

# Other work of the process waits meanwhile.
LONGEST_S = 10.0
_OVERTAKEN = (404, 409)

Object = Mapping[str, Any]


@dataclass(frozen=True)
class _Stopped:
    """The Workload of a stopped job."""

    namespace: str
    job: Object
    """The reference to the job."""
    active: bool
    """It may start, but Kueue keeps it out of its queue."""
    obeyed: str
    """The value of the label that is obeyed already."""
    workload: Object
    """Its name, UID and version, and its conditions."""


class Retries:
    """The stopped jobs of all teams."""

    def __init__(self, server: ApiServer, log: Callable[[str], None] = say) -> None:
        self._server, self._log = server, log
        self._stopped: dict[str, _Stopped] = {}
        """By the UID of the Workload."""

    def observe(self, workload: Object) -> None:
        """Take the current state of a Workload."""
        head, owner = workload["metadata"], controller(workload["metadata"])
        active = workload["spec"].get("active", True)
        idle = (head.get("labels") or {}).get(STOPPED_LABEL) == IDLE and not active
        self.gone(head["uid"])
        if owner and owner["kind"] in RETRYABLE and (idle or deactivated_by_kueue(workload)):
            obeyed = str((head.get("annotations") or {}).get(RETRIED_NOTE) or "")
            kept = {
                "metadata": {key: head.get(key) for key in _IDENTITY},
                "status": {"conditions": (workload.get("status") or {}).get("conditions") or ()},
            }
            self._stopped[head["uid"]] = _Stopped(head["namespace"], owner, active, obeyed, kept)

    def gone(self, uid: str) -> None:
        """Forget a Workload that is finished or deleted."""
        self._stopped.pop(uid, None)

    def only(self, namespace: str, existing: Collection[str]) -> None:
        """Forget the Workloads of a namespace that do not exist any more."""
        for uid in [uid for uid, one in self._stopped.items() if one.namespace == namespace]:
            if uid not in existing:
                self.gone(uid)

    def obey(self, retry: Callable[[str], str], now: int) -> None:
        """Start the jobs again whose label has a new value, in turn of each namespace. Raises OSError.

        `retry`: the label of a job by its UID; empty without one. `now`: the API server's time.
        """
        due: dict[str, list[_Stopped]] = {}
        for one in self._stopped.values():
            if one.active or retry(one.job["uid"]) not in ("", one.obeyed):
                due.setdefault(one.namespace, []).append(one)
        until = time.monotonic() + LONGEST_S
        while due and time.monotonic() < until:
            for namespace in [*due]:
                one = due[namespace].pop()
                if not due[namespace]:
                    del due[namespace]
                try:
                    self._start(one, retry(one.job["uid"]), now)
                except (ApiServerError, *UNREADABLE) as error:
                    self._log(f"{namespace}/{one.job['name']}: no retry: {error!r}")

    def _start(self, one: _Stopped, wanted: str, now: int) -> None:
        head, found = one.workload["metadata"], one.workload
        target = f"{API}/namespaces/{one.namespace}/workloads/{head['name']}"
        if not one.active:
            # Of this version only: an administrator may have stopped it since.
            marks = {
                "uid": head["uid"],
                "resourceVersion": head["resourceVersion"],
                "labels": {STOPPED_LABEL: None},
                "annotations": {RETRIED_NOTE: wanted},
            }
            found = self._patch(target, {"spec": {"active": True}, "metadata": marks})
            if found:
                self.gone(head["uid"])
                self._log(f"{one.namespace}/{one.job['name']}: starts again, as its label {RETRY_LABEL} asks")
        requeued = _requeued(found, now)
        if requeued:
            # One that failed is observed again: active, and not in the queue.
            self._patch(f"{target}/status", requeued)

    def _patch(self, path: str, change: Object) -> Object:
        """The changed object; empty where another change was first. Raises ApiServerError and OSError."""
        status, found = self._server.ask("PATCH", path, change)
        if status >= 300 and status not in _OVERTAKEN:
            raise ApiServerError(status, str(found.get("message")))
        return found if status < 300 else {}


_IDENTITY = ("name", "uid", "resourceVersion", "generation")


def _requeued(workload: Object, now: int) -> Object | None:
    """The change with which Kueue queues a job again that it deactivated; None where it does so itself.

    Kueue 0.19.2 sets the condition Requeued to False with the reason of the eviction, such as
    `DeactivatedDueToRequeuingLimitExceeded` (pkg/controller/jobframework/reconciler.go), and to True only for
    the reason `Deactivated` (pkg/controller/core/workload_controller.go): a job that is merely active waits
    for ever (pkg/cache/queue/cluster_queue.go, `backoffWaitingTimeExpired`), also one that an administrator
    resumed (kubernetes-sigs/kueue#14870, fixed after that release by #14874). A merge patch has the whole
    list, so it applies to this version of the Workload.
    """
    rows = [dict(row) for row in (workload.get("status") or {}).get("conditions") or ()]
    for row in rows:
        if row["type"] == "Requeued" and row["status"] == "False" and row["reason"] in DEACTIVATED:
            head = workload["metadata"]
            row |= {"status": "True", "reason": "Reactivated", "message": "The workload was reactivated"}
            row |= {"lastTransitionTime": stamp(now), "observedGeneration": head.get("generation") or 0}
            return {
                "metadata": {"uid": head["uid"], "resourceVersion": head["resourceVersion"]},
                "status": {"conditions": rows},
            }
    return None
