"""Stop jobs through their Workloads; standard library only."""

from typing import Any

from agents.idle_gpus.holders import Holder
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.jobs import controller, path
from agents.shared.kueue import API, IDLE, JOB_UID_LABEL, RETRIED_NOTE, RETRY_LABEL, STOPPED_LABEL

_NOT_FOUND, _CONFLICT = 404, 409

Object = dict[str, Any]


class Jobs:
    """The jobs of teams, as far as this program stops them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def stop(self, holder: Holder) -> bool:
        """Deactivate the Workload: Kueue stops the job, keeps it, and starts it once the Workload is active.

        A Job that is only suspended would be started again at once (kubernetes-sigs/kueue v0.19.2,
        pkg/controller/jobframework/reconciler.go, `startJob`). A member starts it again by a label
        (`agents.queued_jobs.retries`). Returns whether there is a Workload. Raises ApiServerError and
        OSError.
        """
        job = self._job(holder.kind, holder.namespace, holder.name)
        if job is None:
            return False
        selector = f"{JOB_UID_LABEL}={job['metadata']['uid']}"
        at = f"{API}/namespaces/{holder.namespace}/workloads"
        active = [
            one for one in self._server.every(at, labelSelector=selector) if one["spec"].get("active", True)
        ]
        # The value of the label that it has already asks for nothing.
        obeyed = (job["metadata"].get("labels") or {}).get(RETRY_LABEL)
        for workload in active:
            metadata = workload["metadata"]
            marks = {
                "uid": metadata["uid"],
                "labels": {STOPPED_LABEL: IDLE},
                "annotations": {RETRIED_NOTE: obeyed},
            }
            change = {"spec": {"active": False}, "metadata": marks}
            status, found = self._server.ask("PATCH", f"{at}/{metadata['name']}", change)
            # One that is gone or changed is left for the next round.
            if status >= 300 and status not in (_NOT_FOUND, _CONFLICT):
                raise ApiServerError(status, str(found.get("message")))
        return bool(active)

    def _job(self, kind: str, namespace: str, name: str) -> Object | None:
        """The queued object: a TrainJob's JobSet has an owner."""
        status, found = self._server.ask("GET", path(kind, namespace, name))
        if status == _NOT_FOUND:
            say(f"{namespace}/{name}: no such {kind}; not stopped")
            return None
        if status >= 300:
            raise ApiServerError(status, str(found.get("message")))
        owner = controller(found["metadata"])
        if kind == "JobSet" and owner and owner["kind"] == "TrainJob":
            return self._job("TrainJob", namespace, owner["name"])
        return dict(found)
