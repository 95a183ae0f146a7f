"""Give back the quota of jobs that were on a lost cluster; pure, standard library only.

Kueue gives the quota of an evicted job back once its owner has no active pods (kueue v0.19.2
pkg/controller/jobframework/reconciler.go, step 6; `IsActive` of pkg/controller/jobs/job, jobset and
trainjob). On a manager Kueue copies these counts from the cluster that runs the job. Of a lost one they stay
as they were, so the job never starts elsewhere (kubernetes-sigs/kueue#15380). Here they become zero, once the
cluster itself has ended the job (`fence`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agents.clusters.dispatch import CHECK, chosen

LOST_S = 600.0
"""Seconds without a connection, and so without a renewed Lease, after which the jobs of a cluster have ended:
those after which Kueue itself starts them elsewhere (`workerLostTimeout`)."""
_JOB = "/apis/batch/v1"
_JOBSET, _TRAINJOB = "/apis/jobset.x-k8s.io/v1alpha2", "/apis/trainer.kubeflow.org/v1alpha1"
# By group and kind: the API, the resource, and a status without active pods. Counts of the others are lists,
# which Kueue copies again from the next cluster.
_OWNERS: Mapping[tuple[str, str], tuple[str, str, Mapping[str, Any]]] = {
    ("batch", "Job"): (_JOB, "jobs", {"active": 0, "ready": 0}),
    ("jobset.x-k8s.io", "JobSet"): (_JOBSET, "jobsets", {"replicatedJobsStatus": None}),
    ("trainer.kubeflow.org", "TrainJob"): (_TRAINJOB, "trainjobs", {"jobsStatus": None}),
}


@dataclass(frozen=True)
class Released:
    """The job of a Workload has no pods any more."""

    path: str
    """Of the status of its owner."""
    body: Mapping[str, Any]
    """A merge patch, which another object of that name refuses."""


def released(
    workload: Mapping[str, Any], clusters: Mapping[str, str], gone: Collection[str]
) -> Released | None:
    """What gives the quota of an evicted Workload back; None: Kueue does so itself, or its job may run.

    `clusters`: the cluster of each flavor. `gone`: clusters that have not been connected for `LOST_S`.
    """
    status = workload.get("status") or {}
    conditions = {row["type"] for row in status.get("conditions") or () if row["status"] == "True"}
    if not {"Evicted", "QuotaReserved"} <= conditions or "Finished" in conditions:
        return None
    if not any(row["name"] == CHECK for row in status.get("admissionChecks") or ()):
        return None
    sent = str(status.get("clusterName") or "")
    places = {sent, chosen(status.get("admission") or {}, clusters)} - {"", None}
    if not places or not places <= {*gone}:
        return None
    metadata = workload["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        found = _OWNERS.get((owner["apiVersion"].partition("/")[0], owner["kind"]))
        if found and owner.get("controller"):
            api, plural, counts = found
            path = f"{api}/namespaces/{metadata['namespace']}/{plural}/{owner['name']}/status"
            return Released(path, {"metadata": {"uid": owner["uid"]}, "status": counts})
    return None
