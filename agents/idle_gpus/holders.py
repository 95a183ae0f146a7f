"""Holders of GPUs: pods, and the job or session that they belong to; standard library only."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.quantity import parse
from smoke_training.checkpoint_policy import LAST

STOP_AT = "trainstack.dev/idle-stop-at"
"""Annotation of a pod with idle GPUs: time of its stop in UTC, or `never`; a later time postpones it."""
NEVER = "never"
PURPOSE_LABEL, INTERACTIVE = "trainstack.dev/purpose", "interactive"
"""Label of a pod in which a member works; it is stopped as sessions are."""
OWNER_LABEL = "trainstack.dev/owner"
"""Label of a pod: the owner that alerts name; default: the team."""
_POOL_LABEL = "trainstack.dev/pool"
_JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_JOBSET_UID_LABEL = "jobset.sigs.k8s.io/jobset-uid"
_GPUS = "nvidia.com/"  # whole GPUs, shares (`gpu.shared`) and partitions (`mig-...`)
_OF_CONTAINER = ("resources", "restartPolicy")
_ENDED = ("Succeeded", "Failed")
JOBS = ("Job", "JobSet")
"""Kinds of holders that Kueue queues, and keeps when they are stopped."""


@dataclass(frozen=True)
class GpuPod:
    """A pod that requests GPUs. Times in seconds since 1970."""

    namespace: str
    name: str
    uid: str
    owner: str
    gpus: int
    interactive: bool
    began: float | None
    """Start of the pod, which no restart of its containers changes; None before."""
    started: float | None
    """Time at which all of its containers had started, anew after a restart; None before."""
    last_checkpoint: float | None
    """Time of the last checkpoint that its run reported."""
    stop_at: float | None
    """Time of the stop; infinite for `never`; None without an announcement."""


@dataclass(frozen=True)
class Holder:
    """The unit that is stopped as a whole: a job, a session, a single pod."""

    kind: str
    """`Pod`, `Job`, `JobSet`, `StatefulSet` or `ReplicaSet`."""
    namespace: str
    name: str
    pods: tuple[GpuPod, ...]
    uid: str = ""
    """UID of the object: a job that is created again is another holder."""
    gone: tuple[GpuPod, ...] = ()
    """Pods that it had before (`agents.idle_gpus.history`)."""
    most_gpus: int = 0
    """The most GPUs that it had at once."""

    @property
    def interactive(self) -> bool:
        """Return whether a member works in it."""
        return all(pod.interactive for pod in self.pods)


def holders(objects: Iterable[Mapping[str, Any]], interactive_pools: Sequence[str]) -> list[Holder]:
    """The holders of GPUs among pods of the API server."""
    found: dict[tuple[str, str, str, str], list[GpuPod]] = {}
    for body in objects:
        pod = _pod(body, interactive_pools)
        if pod is not None:
            kind, name, uid = _held_by(body)
            found.setdefault((kind, pod.namespace, name, uid), []).append(pod)
    return [
        Holder(kind, namespace, name, tuple(pods), uid)
        for (kind, namespace, name, uid), pods in found.items()
    ]


def bare(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pod without the parts that nothing here reads: a whole one takes ten times as much memory."""
    spec, status, head = pod["spec"], pod.get("status") or {}, pod["metadata"]
    return {
        "metadata": {key: value for key, value in head.items() if key != "managedFields"},
        "spec": {
            "nodeSelector": spec.get("nodeSelector"),
            **{
                kind: [{key: one.get(key) for key in _OF_CONTAINER} for one in spec.get(kind) or ()]
                for kind in ("containers", "initContainers")
            },
        },
        "status": {key: status.get(key) for key in ("phase", "startTime", "containerStatuses")},
    }


def seconds(text: str | None) -> float | None:
    """A time of Kubernetes in seconds; None for none, and for an invalid one."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def _pod(body: Mapping[str, Any], interactive_pools: Sequence[str]) -> GpuPod | None:
    head, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    gpus = _requested(spec)
    if not gpus or status.get("phase") in _ENDED or head.get("deletionTimestamp"):
        return None
    labels, notes = head.get("labels") or {}, head.get("annotations") or {}
    pool = (spec.get("nodeSelector") or {}).get(_POOL_LABEL)
    stop_at = notes.get(STOP_AT)
    return GpuPod(
        namespace=head["namespace"],
        name=head["name"],
        uid=head["uid"],
        owner=labels.get(OWNER_LABEL) or head["namespace"],
        gpus=gpus,
        interactive=labels.get(PURPOSE_LABEL) == INTERACTIVE or pool in interactive_pools,
        began=seconds(status.get("startTime")),
        started=_started(status),
        last_checkpoint=seconds(notes.get(LAST)),
        stop_at=float("inf") if stop_at == NEVER else seconds(stop_at),
    )


def _requested(spec: Mapping[str, Any]) -> int:
    """GPUs that a pod holds: those of its sidecars and containers, or more before these start."""
    sidecars = most = 0
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars += _asked(container)
        else:
            most = max(most, sidecars + _asked(container))
    return max(most, sidecars + sum(_asked(container) for container in spec.get("containers") or ()))


def _asked(container: Mapping[str, Any]) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return sum(int(parse(amount)) for name, amount in limits.items() if name.startswith(_GPUS))


def _started(status: Mapping[str, Any]) -> float | None:
    if status.get("phase") != "Running":
        return None
    running = [
        seconds(((each.get("state") or {}).get("running") or {}).get("startedAt"))
        for each in status.get("containerStatuses") or ()
    ]
    known = [at for at in running if at is not None]
    return max(known) if known else seconds(status.get("startTime"))


def _held_by(body: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, name and UID of the holder."""
    head = body["metadata"]
    labels = head.get("labels") or {}
    for owner in head.get("ownerReferences") or ():
        # Members cannot write the label into the template of a Job (`queueing.kueue_fields`).
        if owner.get("controller") and owner["kind"] == "Job" and (jobset := labels.get(_JOBSET_LABEL)):
            return "JobSet", jobset, labels.get(_JOBSET_UID_LABEL, "")
        if owner.get("controller") and owner["kind"] in ("Job", "StatefulSet", "ReplicaSet"):
            return owner["kind"], owner["name"], owner.get("uid", "")
    return "Pod", head["name"], head["uid"]
