"""Storage classes of a cluster: the initial ones by its origin, and those of programs."""

from collections.abc import Mapping
from typing import Any

from rehearsal.kubernetes import ambient
from rehearsal.kubernetes.clusters import EKS_CLUSTER, GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.diffs import annotations
from rehearsal.kubernetes.kinds import facts

_MAKERS = {EKS_CLUSTER: "eks", GKE_CLUSTER: "gke", ambient.TYPE: "ambient"}
_KIND = "StorageClass"
_DEFAULTS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def default(cluster: KubeCluster) -> str:
    """Default class of claims, empty when there is none; the newest where several are marked."""
    marked = [
        record.name
        for record in cluster.objects(_KIND)
        if any(annotations(record.inputs).get(name) == "true" for name in _DEFAULTS)
    ]
    return marked[-1] if marked else str(_made_with(cluster).get("default") or "")


def waits_for_pod(cluster: KubeCluster, name: str) -> bool | None:
    """Return whether a class binds with the first pod of a claim; None when there is no such class."""
    record = cluster.get(_KIND, "", name)
    mode = record.inputs.get("volumeBindingMode") if record else _made_with(cluster)["classes"].get(name)
    if record is None and mode is None:
        return None
    return bool(mode == "WaitForFirstConsumer")


def _made_with(cluster: KubeCluster) -> Mapping[str, Any]:
    found: Mapping[str, Any] = facts()["storage"][_MAKERS[cluster.record.type]]
    return found
