"""Stop jobs through their Workloads, and start them again when a member asks; standard library only."""

from collections.abc import Mapping
from typing import Any

from agents.idle_gpus.holders import Holder
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.jobs import controller, path

_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
RETRY_LABEL = "trainstack.dev/retry"
"""Label of a job: a new value starts the job again that was stopped. Members cannot change Workloads."""
STOPPED_LABEL, IDLE = "trainstack.dev/stopped", "idle"
"""Label of the Workload of a stopped job."""
_RETRIED = "trainstack.dev/retried"  # annotation beside it: the value of the label that is obeyed already
_JOB_UID = "kueue.x-k8s.io/job-uid"  # label of a Workload (kueue v0.19.2 pkg/controller/constants)
_NOT_FOUND, _CONFLICT = 404, 409

Object = dict[str, Any]


class Jobs:
    """The jobs of teams, as far as this program stops them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._stopped: dict[str, dict[str, Object]] = {}
        """Workloads of stopped jobs, by namespace and name."""

    def stop(self, holder: Holder) -> bool:
        """Deactivate the Workload: Kueue stops the job, keeps it, and starts it once the Workload is active.

        A Job that is only suspended would be started again at once (kubernetes-sigs/kueue v0.19.2,
        pkg/controller/jobframework/reconciler.go, `startJob`). Returns whether there is a Workload. Raises
        ApiServerError and OSError.
        """
        job = self._job(holder.kind, holder.namespace, holder.name)
        workloads = self._workloads(holder.namespace, f"{_JOB_UID}={job['metadata']['uid']}") if job else []
        active = [one for one in workloads if one["spec"].get("active", True)]
        for workload in active:
            self._change(workload, active=False, retried=_retry(job))
        return bool(active)

    def retry(self, namespace: str) -> list[str]:
        """Start stopped jobs again whose label has a new value; returns their names. Raises as `stop`."""
        if namespace not in self._stopped:
            found = self._workloads(namespace, f"{STOPPED_LABEL}={IDLE}")
            self._stopped[namespace] = {one["metadata"]["name"]: one for one in found}
        by_kind: dict[str, list[tuple[Object, str]]] = {}
        for workload in self._stopped[namespace].values():
            if owner := controller(workload["metadata"]):
                by_kind.setdefault(owner["kind"], []).append((workload, str(owner["name"])))
        started = []
        for kind, rows in by_kind.items():
            labelled = self._server.every(path(kind, namespace), labelSelector=RETRY_LABEL)
            asked = {str(job["metadata"]["name"]): _retry(job) for job in labelled}
            for workload, name in rows:
                known = (workload["metadata"].get("annotations") or {}).get(_RETRIED, "")
                if asked.get(name, known) != known:
                    self._change(workload, active=True, retried=None)
                    started.append(name)
        return started

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

    def _workloads(self, namespace: str, selector: str) -> list[Object]:
        every = self._server.every(f"{_KUEUE}/namespaces/{namespace}/workloads", labelSelector=selector)
        return [dict(one) for one in every]

    def _change(self, workload: Object, *, active: bool, retried: str | None) -> None:
        """Activate or deactivate a Workload; one that is gone or changed is left for the next round."""
        metadata = workload["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        marks = {
            "uid": metadata["uid"],
            "labels": {STOPPED_LABEL: None if active else IDLE},
            "annotations": {_RETRIED: retried},
        }
        change = {"spec": {"active": active}, "metadata": marks}
        stopped = self._stopped.setdefault(namespace, {})
        try:
            kept = self._server.must("PATCH", f"{_KUEUE}/namespaces/{namespace}/workloads/{name}", change)
        except ApiServerError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise
            stopped.pop(name, None)
            return
        if active:
            stopped.pop(name, None)
        else:
            stopped[name] = dict(kept)


def _retry(job: Mapping[str, Any] | None) -> str:
    return str(((job or {}).get("metadata", {}).get("labels") or {}).get(RETRY_LABEL, ""))
