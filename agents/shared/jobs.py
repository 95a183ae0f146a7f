"""Kinds of jobs for which Kueue creates Workloads: their paths and references; standard library only."""

import urllib.parse
from collections.abc import Mapping
from typing import Any

RUNNING_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of pods that have not ended: those of finished jobs stay, in thousands."""
_PATHS = {
    "Job": ("/apis/batch/v1", "jobs"),
    "JobSet": ("/apis/jobset.x-k8s.io/v1alpha2", "jobsets"),
    "TrainJob": ("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs"),
    "Pod": ("/api/v1", "pods"),
}


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """The path of an object, or of all of its kind in a namespace or in all. Raises KeyError for another."""
    api, plural = _PATHS[kind]
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{api}{within}/{plural}/{urllib.parse.quote(name)}".rstrip("/")


def controller(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reference to the object that owns this one; None without one of these kinds."""
    rows = metadata.get("ownerReferences") or ()
    return next((row for row in rows if row["kind"] in _PATHS), None)
