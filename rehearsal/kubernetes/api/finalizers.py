"""Finalizers that delay a deletion until the object is unused.

Sources: kubernetes.io/docs/concepts/storage/persistent-volumes (storage object in use protection);
kubernetes-sigs/kueue v0.19.2, apis/kueue/v1beta2/clusterqueue_types.go and resourceflavor_types.go
(ResourceInUseFinalizerName), pkg/controller/core/resourceflavor_controller.go; kubeflow/trainer v2.2.1,
pkg/controller/clustertrainingruntime_controller.go and trainingruntime_controller.go (a TrainJob that names a
runtime holds it until it is deleted, whether it ended or not).
"""

from collections.abc import Iterator
from typing import Any

from rehearsal.core.in_flight import InFlight
from rehearsal.core.model import Call, Record, RefusalError
from rehearsal.core.properties import at
from rehearsal.kubernetes.clusters import KubeCluster, namespace_of
from rehearsal.kubernetes.kinds import parse

_KUEUE, _TRAINER = "kueue.x-k8s.io", "trainer.kubeflow.org"
# Pause before a delete is final: after one delete, the engine starts those of its dependencies.
_NEXT_S = 2.0
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_TEMPLATES = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")


def wait_released(call: Call, cluster: KubeCluster, record: Record, others: InFlight) -> None:
    """Wait while a finalizer holds an object and other deletes, which may release it, are in progress.

    Raises RefusalError, as the provider does on its timeout, when they have ended and the object is still
    held. Source: pulumi/pulumi-kubernetes provider/pkg/await/condition/deleted.go.
    """
    if held := others.wait(call, lambda: _held(cluster, record), _NEXT_S):
        raise held


def _held(cluster: KubeCluster, record: Record) -> RefusalError | None:
    """Error for the deletion of an object that is in use."""
    kind = parse(record.type)
    finalizer, users = "", list[str]()
    if (kind.group, kind.kind) == (_KUEUE, "ResourceFlavor"):
        finalizer, users = "kueue.x-k8s.io/resource-in-use", list(_queues_with(cluster, record.name))
    elif kind.group == _TRAINER and kind.kind in _RUNTIMES:
        finalizer, users = f"{_TRAINER}/resource-in-use", list(_jobs_of(cluster, record, kind.kind))
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


def _queues_with(cluster: KubeCluster, flavor: str) -> Iterator[str]:
    for queue in cluster.objects("ClusterQueue"):
        for group in at(queue.inputs, "spec.resourceGroups") or ():
            if any(one.get("name") == flavor for one in group.get("flavors") or ()):
                yield f"ClusterQueue {queue.name}"
                break


def _jobs_of(cluster: KubeCluster, runtime: Record, kind: str) -> Iterator[str]:
    for job in cluster.objects("TrainJob", namespace_of(runtime.outputs) or None):
        named = at(job.inputs, "spec.runtimeRef") or {}
        if (named.get("kind", _RUNTIMES[0]), named.get("name")) == (kind, runtime.name):
            yield f"TrainJob {job.id}"


def _pods_with(cluster: KubeCluster, claim: Record) -> Iterator[str]:
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
    """Return whether the pods have ended, as those of a Job do."""
    conditions = at(owner.outputs, "status.conditions") or ()
    ended = any(one.get("type") in ("Complete", "Failed") for one in conditions)
    return ended or at(owner.outputs, "status.phase") in ("Succeeded", "Failed")


def _claims_on(cluster: KubeCluster, volume: str) -> Iterator[str]:
    for claim in cluster.objects("PersistentVolumeClaim"):
        if at(claim.inputs, "spec.volumeName") == volume:
            yield f"PersistentVolumeClaim {claim.id}"
