"""Start jobs again that were stopped, when a member asks by a label; standard library only.

Members cannot change Workloads. A job that Kueue deactivated, or that held idle GPUs, starts again for each
new value of the label of its Job, JobSet or TrainJob.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agents.queued_jobs.reasons import DEACTIVATED, RETRYABLE, deactivated_by_kueue
from agents.queued_jobs.turns import Turns
from agents.shared.api_server import UNREADABLE, ApiServer, ApiServerError, say
from agents.shared.jobs import controller
from agents.shared.kueue import API, IDLE, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL
from agents.shared.times import stamp

# Requests, of which a retry takes one or two: a sweep that was stopped as idle starts at once.
BURST, EACH_S = 100, 5.0
# Wait after an error, doubled up to the longest one.
_AGAIN_S, _MOST_AGAIN_S = 60.0, 3600.0
_OVERTAKEN = (404, 409)

Object = Mapping[str, Any]


@dataclass
class _Stopped:
    """The Workload of a job that is or was stopped."""

    namespace: str
    job: Object
    """The reference to the job."""
    startable: bool
    """A new value of the label starts it. Else its state is corrected, without a label."""
    stale: bool
    """It has the label of a stop as idle, and an administrator has resumed it since."""
    obeyed: str
    """The value of the label that is obeyed already."""
    workload: Object
    """Its name, UID and version, and its conditions."""
    failures: int = 0
    due_at: float = 0.0
    """Not before, after an error."""


class Retries:
    """The stopped jobs of all teams. Times `at` are of a clock that never goes back."""

    def __init__(self, server: ApiServer, log: Callable[[str], None] = say) -> None:
        self._server, self._log = server, log
        self._stopped: dict[str, _Stopped] = {}
        """By the UID of the Workload."""
        self._turns = Turns(BURST, EACH_S)

    def observe(self, workload: Object) -> None:
        """Take the current state of a Workload."""
        head, owner = workload["metadata"], controller(workload["metadata"])
        active = workload["spec"].get("active", True)
        before = self._stopped.pop(head["uid"], None)
        labelled = (head.get("labels") or {}).get(STOPPED_LABEL) == IDLE
        # Without the label of its stop before, an administrator's next stop is not one for idle GPUs.
        stale = labelled and bool(active or (before and before.stale))
        by_kueue = deactivated_by_kueue(workload)
        if owner and owner["kind"] in RETRYABLE and (labelled or by_kueue):
            self._stopped[head["uid"]] = _Stopped(
                namespace=head["namespace"],
                job=owner,
                startable=not active and (by_kueue or not stale),
                stale=stale,
                obeyed=str((head.get("annotations") or {}).get(RETRIED_NOTE) or ""),
                workload={
                    "metadata": {key: head.get(key) for key in _IDENTITY},
                    "spec": {"active": active},
                    "status": {"conditions": (workload.get("status") or {}).get("conditions") or ()},
                },
                failures=before.failures if before else 0,
                due_at=before.due_at if before else 0.0,
            )

    def gone(self, uid: str) -> None:
        """Forget a Workload that is finished or deleted."""
        self._stopped.pop(uid, None)

    def only(self, namespace: str, existing: Collection[str]) -> None:
        """Forget the Workloads of a namespace that do not exist any more."""
        for uid in [uid for uid, one in self._stopped.items() if one.namespace == namespace]:
            if uid not in existing:
                self.gone(uid)

    def obey(self, retry: Callable[[str], str], now: int, at: float) -> None:
        """Start the jobs again whose label has a new value, in turn of each namespace. Raises OSError.

        `retry`: the label of a job by its UID; empty without one. `now`: the API server's time.
        """
        due: dict[str, list[_Stopped]] = {}
        # The first ones are taken from the end.
        for one in reversed(self._stopped.values()):
            asked = not one.startable or retry(one.job["uid"]) not in ("", one.obeyed)
            if asked and at >= one.due_at:
                due.setdefault(one.namespace, []).append(one)

        def act(one: _Stopped) -> None:
            try:
                self._start(one, retry(one.job["uid"]), now)
            except (ApiServerError, *UNREADABLE) as error:
                one.due_at = at + min(_MOST_AGAIN_S, _AGAIN_S * 2**one.failures)
                one.failures = min(one.failures + 1, 10)
                self._log(f"{one.namespace}/{one.job['name']}: no retry: {error!r}")

        self._turns.take(due, act, at)

    def _start(self, one: _Stopped, wanted: str, now: int) -> None:
        head, found = one.workload["metadata"], one.workload
        target = f"{API}/namespaces/{one.namespace}/workloads/{head['name']}"
        if one.startable or one.stale:
            # Of this version only: an administrator may have stopped it since.
            marks = {
                "uid": head["uid"],
                "resourceVersion": head["resourceVersion"],
                "labels": {STOPPED_LABEL: None},
            }
            change: dict[str, Any] = {"metadata": marks}
            if one.startable:
                marks["annotations"] = {RETRIED_NOTE: wanted}
                change["spec"] = {"active": True}
            found = self._patch(target, change)
            if found and one.startable:
                self._log(f"{one.namespace}/{one.job['name']}: starts again, as its label {RETRY_LABEL} asks")
            if found:
                self.gone(head["uid"])
        requeued = _requeued(found, now)
        if requeued:
            # One that failed is observed again: active, and not in the queue.
            self._patch(f"{target}/status", requeued)

    def _patch(self, path: str, change: Object) -> Object:
        """The changed object; empty where another change was first. Raises ApiServerError and OSError."""
        self._turns.spend()
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
    if not (workload.get("spec") or {}).get("active", True):
        return None
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
