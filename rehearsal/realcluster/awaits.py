"""Readiness of live objects by the rules of the provider's awaiters, and waiting for it.

Source: pulumi/pulumi-kubernetes, provider/pkg/await: deployment.go, statefulset.go, job.go, pod.go,
service.go, awaiters.go; provider/pkg/metadata/overrides.go.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests

from rehearsal.controlplane.api import KubernetesApi, Object
from rehearsal.core.model import Call, Properties, Record
from rehearsal.kubernetes.api.awaits import NO_PODS, GaveUpError, limit
from rehearsal.kubernetes.awaiter.kinds import awaited
from rehearsal.kubernetes.awaiter.wait_for import Condition, conditions_of, wait_for
from rehearsal.realcluster.pod_problems import complaints

_POLL_S = 0.5
# A Service's endpoints are final after that long without a change (service.go).
_SETTLE_S = 10.0


@dataclass(frozen=True)
class AwaitResult:
    """State of an object, ready or failed for good, with its problems."""

    ready: bool
    problems: list[str] = field(default_factory=list)
    failed: bool = False


@dataclass(frozen=True)
class RelatedObjects:
    """Objects that readiness depends on: owned objects, pods and endpoint slices of the namespace."""

    replica_sets: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    slices: list[Object] = field(default_factory=list)
    waits_for_pod: bool = False
    """For a claim: whether its StorageClass binds it with the first pod."""


def judge(live: Object, around: RelatedObjects) -> AwaitResult:
    """Return whether an object is ready now."""
    found = _JUDGES.get(live["kind"])
    return found(live, around) if found else AwaitResult(True)


def look_around(api: KubernetesApi, live: Object) -> RelatedObjects:
    """Read the objects that `judge` needs."""
    kind, namespace = live["kind"], str(live["metadata"].get("namespace") or "")
    if kind == "PersistentVolumeClaim":
        name = (live.get("spec") or {}).get("storageClassName")
        found = api.find("storage.k8s.io/v1", "StorageClass", name) if name else None
        return RelatedObjects(
            waits_for_pod=bool(found and found.get("volumeBindingMode") == "WaitForFirstConsumer")
        )
    if kind == "Service":
        labels = f"kubernetes.io/service-name={live['metadata']['name']}"
        return RelatedObjects(
            slices=api.list("discovery.k8s.io/v1", "EndpointSlice", namespace, labels=labels)
        )
    if kind not in _JUDGES or not namespace:
        return RelatedObjects()
    pods = api.list("v1", "Pod", namespace)
    if kind != "Deployment":
        return RelatedObjects(pods=[pod for pod in pods if _owns(live, pod)])
    sets = [one for one in api.list("apps/v1", "ReplicaSet", namespace) if _owns(live, one)]
    return RelatedObjects(sets, [pod for pod in pods if any(_owns(one, pod) for one in sets)])


def wait(call: Call, api: KubernetesApi, live: Object, record: Record, read: Callable[[], Object]) -> Object:
    """Wait until an object is ready; returns its final state. Raises GaveUpError."""
    name, kind, checks = str(live["metadata"]["name"]), live["kind"], _conditions(record.inputs)
    if not checks and kind not in _JUDGES:
        return live
    ends = time.monotonic() + limit(call, record)
    settled, logged = _Settled(), ""
    while True:
        verdict = _meets(live, checks) if checks else _seen(api, live)
        if verdict.ready and (checks or kind != "Service" or settled.by(verdict, live)):
            return live
        if verdict.failed:
            messages = f"Resource '{name}' was created but failed to initialize"
            raise GaveUpError(messages, verdict.problems)
        if time.monotonic() >= ends:
            raise GaveUpError(f"'{name}' timed out waiting to be Ready", verdict.problems)
        if call.cancelled.wait(_POLL_S):
            raise GaveUpError(f'Resource operation was cancelled for "{name}"', verdict.problems)
        status = verdict.problems[0] if verdict.problems else f"Waiting for {name}"
        if status != logged:
            logged = status
            call.log("status", status)
        with contextlib.suppress(requests.RequestException):  # responses may be slow while ranks compute
            live = read()


def _seen(api: KubernetesApi, live: Object) -> AwaitResult:
    try:
        return judge(live, look_around(api, live))
    except requests.RequestException:
        return AwaitResult(False, ["the API server does not respond; retrying"])


def _conditions(inputs: Properties) -> list[Condition]:
    """Conditions of the waitFor annotation. Raises GaveUpError for invalid ones."""
    try:
        return conditions_of(wait_for(inputs)) if wait_for(inputs) else []
    except ValueError as error:
        raise GaveUpError(str(error), []) from error


def _meets(live: Object, checks: list[Condition]) -> AwaitResult:
    missing = [messages for check in checks if (messages := check(live))]
    return AwaitResult(not missing, missing)


class _Settled:
    """Detects whether a Service's endpoints have stopped changing."""

    def __init__(self) -> None:
        self._since: float | None = None

    def by(self, verdict: AwaitResult, service: Object) -> bool:
        spec = service.get("spec") or {}
        if not _has_endpoints(spec):
            return True
        self._since = self._since or time.monotonic()
        return verdict.ready and time.monotonic() - self._since >= _SETTLE_S


# -- kinds -------------------------------------------------------------------------------------------------


def _deployment(live: Object, around: RelatedObjects) -> AwaitResult:
    spec, metadata = live["spec"], live["metadata"]
    revision = (metadata.get("annotations") or {}).get("deployment.kubernetes.io/revision")
    current = [
        one
        for one in around.replica_sets
        if (one["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision") == revision
    ]
    wanted = 1 if spec.get("replicas") is None else int(spec["replicas"])
    available, progressing = _condition(live, "Available"), _condition(live, "Progressing")
    rolled_out = revision == "1" or progressing.get("reason") == "NewReplicaSetAvailable"
    enough = any(int((one.get("status") or {}).get("readyReplicas") or 0) >= wanted for one in current)
    if _observed(live) and available.get("status") == "True" and rolled_out and (enough or wanted == 0):
        return AwaitResult(True)
    messages = [
        f"[{row.get('reason')}] {row.get('message')}"
        for row in (available, progressing)
        if row and (row.get("status") != "True")
    ]
    return AwaitResult(
        False, [*messages, "Minimum number of live Pods was not attained", *complaints(around.pods)]
    )


def _stateful_set(live: Object, around: RelatedObjects) -> AwaitResult:
    status = live.get("status") or {}
    wanted = int((live["spec"].get("replicas", 1)) or 0)
    counts = [int(status.get(name) or 0) for name in ("replicas", "readyReplicas", "currentReplicas")]
    same = status.get("currentRevision") == status.get("updateRevision")
    ready = _observed(live) and counts == [wanted] * 3 and same
    return AwaitResult(ready, [] if ready else complaints(around.pods))


def _daemon_set(live: Object, around: RelatedObjects) -> AwaitResult:
    status = live.get("status") or {}
    wanted = int(status.get("desiredNumberScheduled") or 0)
    counts = [
        int(status.get(name) or 0) for name in ("updatedNumberScheduled", "numberAvailable", "numberReady")
    ]
    ready = _observed(live) and all(count >= wanted for count in counts)
    return AwaitResult(ready, [] if ready else complaints(around.pods))


def _job(live: Object, around: RelatedObjects) -> AwaitResult:
    status = live.get("status") or {}
    started, failed = status.get("startTime"), _condition(live, "Failed")
    if started and _condition(live, "Complete").get("status") == "True":
        return AwaitResult(True)
    fatal = (
        bool(started)
        and failed.get("status") == "True"
        and failed.get("reason") in awaited()["batch/v1 Job"].errors
    )
    messages = [f"[{failed['reason']}] {failed.get('message')}"] if failed else []
    suspended = _condition(live, "Suspended")
    if suspended.get("status") == "True":
        messages.append(f"[{suspended.get('reason')}] {suspended.get('message')}")
    return AwaitResult(False, [*messages, *complaints(around.pods)], failed=fatal)


def _pod(live: Object, around: RelatedObjects) -> AwaitResult:
    states = {row["type"]: row["status"] for row in (live.get("status") or {}).get("conditions") or ()}
    begun = states.get("PodScheduled") == "True" and states.get("Initialized") == "True"
    ready = begun and (
        states.get("Ready") == "True" or (live.get("status") or {}).get("phase") == "Succeeded"
    )
    return AwaitResult(ready, [] if ready else complaints([live]))


def _service(live: Object, around: RelatedObjects) -> AwaitResult:
    spec = live.get("spec") or {}
    if not _has_endpoints(spec):
        return AwaitResult(True)
    balanced = ((live.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    if spec.get("type") == "LoadBalancer" and not balanced:
        return AwaitResult(
            False, ["Service was not allocated an IP address; does your cloud provider support this?"]
        )
    rows = [row for one in around.slices for row in one.get("endpoints") or ()]
    waiting = [row for row in rows if not (row.get("conditions") or {}).get("ready")]
    return AwaitResult(bool(around.slices) and not waiting, [NO_PODS] if waiting or not around.slices else [])


def _claim(live: Object, around: RelatedObjects) -> AwaitResult:
    phase = (live.get("status") or {}).get("phase")
    ready = phase == ("Pending" if around.waits_for_pod else "Bound")
    return AwaitResult(ready, [] if ready else [f"PersistentVolumeClaim is {phase}"])


def _volume(live: Object, around: RelatedObjects) -> AwaitResult:
    phase = (live.get("status") or {}).get("phase")
    return AwaitResult(phase in ("Available", "Bound"), [f"PersistentVolume is {phase}"])


def _quota(live: Object, around: RelatedObjects) -> AwaitResult:
    ready = (live.get("status") or {}).get("hard") == live["spec"].get("hard")
    return AwaitResult(ready, [] if ready else ["the quota has not been taken over"])


_JUDGES: Mapping[str, Callable[[Object, RelatedObjects], AwaitResult]] = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "Pod": _pod,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "ResourceQuota": _quota,
}


def _has_endpoints(spec: Mapping[str, Any]) -> bool:
    return (
        spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None" and bool(spec.get("selector"))
    )


def _observed(live: Object) -> bool:
    seen = (live.get("status") or {}).get("observedGeneration")
    return seen is None or int(seen) >= int(live["metadata"].get("generation") or 0)


def _condition(live: Object, type: str) -> Mapping[str, Any]:
    rows = (live.get("status") or {}).get("conditions") or ()
    return next((row for row in rows if row.get("type") == type), {})


def _owns(owner: Object, thing: Object) -> bool:
    references = thing["metadata"].get("ownerReferences") or ()
    return any(row["uid"] == owner["metadata"]["uid"] for row in references)
