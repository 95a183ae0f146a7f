"""Actions on a holder of idle GPUs: announce, withdraw, stop; standard library only."""

from typing import Any

from agents.idle_gpus.decisions import ANNOUNCE, STOP, TAKE_BACK, IdleVerdict
from agents.idle_gpus.history import PodHistory
from agents.idle_gpus.holders import JOBS, NEVER, STOP_AT, GpuPod, Holder
from agents.idle_gpus.jobs import Jobs
from agents.shared.api_server import ApiServer, ApiServerError, say
from agents.shared.events import event
from agents.shared.kueue import RETRY_LABEL
from agents.shared.times import stamp

_SOURCE = "trainstack-idle"
_NOT_FOUND = 404
_CONFLICT = 409


class Actions:
    """Performs actions through the API server; `stopped` counts stopped holders by kind."""

    def __init__(self, server: ApiServer, history: PodHistory) -> None:
        self._server, self._jobs, self._history = server, Jobs(server), history
        self.stopped: dict[str, int] = {}

    def take(self, holder: Holder, verdict: IdleVerdict, now: float) -> None:
        """Perform the action of the verdict. Raises ApiServerError and OSError."""
        if verdict.action == ANNOUNCE and verdict.stop_at is not None:
            self._announce(holder, verdict.stop_at, now)
        elif verdict.action == TAKE_BACK:
            self._history.withdraw(holder)
            for pod in holder.pods:
                self._annotate(pod, None)
            self._report(holder, "GpusBusy", f"its GPUs are not idle any more ({verdict.state})", now)
        elif verdict.action == STOP and self._stop(holder):
            self._history.stopped(holder, now)
            self.stopped[holder.kind] = self.stopped.get(holder.kind, 0) + 1
            again = f"; to start it again, give it the label {RETRY_LABEL}" if holder.kind in JOBS else ""
            words = f"stopped: its GPUs were idle, as announced{again}"
            self._report(holder, "GpusIdleStopped", words, now)

    def _announce(self, holder: Holder, stop_at: float, now: float) -> None:
        when = NEVER if stop_at == float("inf") else stamp(stop_at)
        for pod in holder.pods:
            self._annotate(pod, when)
        gpus = sum(pod.gpus for pod in holder.pods)
        ends = "it is not stopped" if when == NEVER else f"it is stopped at {when}"
        more = f"use them, write a checkpoint, or set annotation {STOP_AT} to a later time"
        self._report(holder, "GpusIdle", f"its {gpus} GPUs are idle; {ends}: {more}", now)

    def _annotate(self, pod: GpuPod, when: str | None) -> None:
        """Write the annotation, or remove it with None; a pod that is gone is ignored."""
        change = {"metadata": {"uid": pod.uid, "annotations": {STOP_AT: when}}}
        self._or_gone("PATCH", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", change)

    def _stop(self, holder: Holder) -> bool:
        """Stop a holder; False where nothing is left to stop."""
        space = holder.namespace
        match holder.kind:
            case "Pod":
                for pod in holder.pods:
                    # Never another pod of the same name.
                    only = {"preconditions": {"uid": pod.uid}}
                    self._or_gone("DELETE", f"/api/v1/namespaces/{space}/pods/{pod.name}", only)
            case "StatefulSet":
                self._to_zero("statefulsets", space, holder.name)
            case "ReplicaSet":
                self._to_zero("deployments", space, self._deployment(space, holder.name))
            case _:
                return self._jobs.stop(holder)
        return True

    def _to_zero(self, plural: str, namespace: str, name: str) -> None:
        path = f"/apis/apps/v1/namespaces/{namespace}/{plural}/{name}/scale"
        self._or_gone("PATCH", path, {"spec": {"replicas": 0}})

    def _deployment(self, namespace: str, name: str) -> str:
        found = self._server.must("GET", f"/apis/apps/v1/namespaces/{namespace}/replicasets/{name}")
        owners = found["metadata"].get("ownerReferences") or ()
        return next((each["name"] for each in owners if each["kind"] == "Deployment"), name)

    def _or_gone(self, method: str, path: str, body: dict[str, Any]) -> None:
        try:
            self._server.must(method, path, body)
        except ApiServerError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise

    def _report(self, holder: Holder, reason: str, words: str, now: float) -> None:
        """Report as an Event of the first pod, for `kubectl describe` and collectors of events."""
        say(f"{holder.namespace}/{holder.name}: {reason}: {words}")
        for pod in holder.pods[:1]:
            about = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
            body = event(
                about,
                pod.namespace,
                reason=reason,
                words=f"{holder.kind} {holder.name}: {words}",
                kind="Normal" if reason == "GpusBusy" else "Warning",
                by=_SOURCE,
                at=now,
            )
            self._server.must("POST", f"/api/v1/namespaces/{pod.namespace}/events", body)
