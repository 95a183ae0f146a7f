"""Which finalizers delay a deletion: it waits until nothing uses the object any more.

Sources: kubernetes.io/docs/concepts/storage/persistent-volumes (storage object in use protection);
kubernetes-sigs/kueue v0.19.2, apis/kueue/v1beta2/clusterqueue_types.go and resourceflavor_types.go
(ResourceInUseFinalizerName), pkg/controller/core/resourceflavor_controller.go.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rehearsal.core.model import Call, Record, RefusalError
from rehearsal.core.properties import at
from rehearsal.kubernetes.clusters import Cluster, namespace_of
from rehearsal.kubernetes.kinds import parse

_KUEUE = "kueue.x-k8s.io"
_POLL_S = 0.05
# After a delete, the engine begins those of what it depended on; so long no other one has to be under way.
_NEXT_S = 2.0
_TEMPLATES = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")


class Deletes:
    """The deletes of all engines that are being worked on; one that waits for others is not."""

    def __init__(self) -> None:
        self._lock, self._working, self._ended = threading.Lock(), 0, time.monotonic()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work on one."""
        with self._lock:
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working, self._ended = self._working - 1, time.monotonic()

    def quiet_since(self) -> float:
        """When the last one ended; now, while one is worked on."""
        with self._lock:
            return time.monotonic() if self._working else self._ended


def wait_released(call: Call, cluster: Cluster, record: Record, others: Deletes) -> None:
    """Wait while a finalizer holds an object and other deletes, which may free it, are under way.

    Raises RefusalError, as the provider does after its time limit, when they are over and it is still held.
    Source: pulumi/pulumi-kubernetes provider/pkg/await/condition/deleted.go.
    """
    began = time.monotonic()
    while held := _held(cluster, record):
        last = max(began, others.quiet_since())
        if call.cancelled.wait(_POLL_S) or time.monotonic() > last + _NEXT_S:
            raise held


def _held(cluster: Cluster, record: Record) -> RefusalError | None:
    """The refusal to delete an object that something uses."""
    kind = parse(record.type)
    finalizer, users = "", list[str]()
    if (kind.group, kind.kind) == (_KUEUE, "ResourceFlavor"):
        finalizer, users = "kueue.x-k8s.io/resource-in-use", list(_queues_with(cluster, record.name))
    elif kind.kind == "PersistentVolumeClaim" and not kind.group:
        finalizer, users = "kubernetes.io/pvc-protection", list(_pods_with(cluster, record))
    elif kind.kind == "PersistentVolume" and not kind.group:
        finalizer, users = "kubernetes.io/pv-protection", list(_claims_on(cluster, record.name))
    if not users:
        return None
    return RefusalError(
        "TimedOut",
        f"timed out waiting for the condition: finalizers might be preventing deletion of {kind.kind} "
        f"{record.id}: {finalizer} stays while {', '.join(users[:5])} exists.",
        "Make the users depend on it, so that they are deleted before it.",
    )


def _queues_with(cluster: Cluster, flavor: str) -> Iterator[str]:
    for queue in cluster.objects("ClusterQueue"):
        for group in at(queue.inputs, "spec.resourceGroups") or ():
            if any(one.get("name") == flavor for one in group.get("flavors") or ()):
                yield f"ClusterQueue {queue.name}"
                break


def _pods_with(cluster: Cluster, claim: Record) -> Iterator[str]:
    namespace = namespace_of(claim.outputs)
    for kind in (*_TEMPLATES, "Pod"):
        for owner in cluster.objects(kind, namespace):
            spec = at(owner.inputs, "spec" if kind == "Pod" else "spec.template.spec") or {}
            if _mounts(spec, claim.name) and not _over(owner):
                yield f"{kind} {owner.id}"


def _mounts(spec: Any, claim: str) -> bool:
    volumes = spec.get("volumes") or ()
    return any((one.get("persistentVolumeClaim") or {}).get("claimName") == claim for one in volumes)


def _over(owner: Record) -> bool:
    """Whether the pods have ended, as those of a Job do."""
    conditions = at(owner.outputs, "status.conditions") or ()
    ended = any(one.get("type") in ("Complete", "Failed") for one in conditions)
    return ended or at(owner.outputs, "status.phase") in ("Succeeded", "Failed")


def _claims_on(cluster: Cluster, volume: str) -> Iterator[str]:
    for claim in cluster.objects("PersistentVolumeClaim"):
        if at(claim.inputs, "spec.volumeName") == volume:
            yield f"PersistentVolumeClaim {claim.id}"
