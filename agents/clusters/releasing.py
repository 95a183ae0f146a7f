"""Give back the quota of jobs that ended on their cluster without the manager; standard library only.

Kueue gives the quota of an evicted job back once its owner has no active pods (kueue v0.19.2
pkg/controller/jobframework/reconciler.go, step 6; `IsActive` of pkg/controller/jobs/job, jobset and
trainjob). On a manager Kueue copies these counts from the cluster that runs the job. Of a lost one they stay
as they were, so the job never starts elsewhere (kubernetes-sigs/kueue#15380). The same holds for a job
that the cluster has deleted while it was cut off (`fence`). Here they become zero, once the
cluster has been lost for long enough, or says that it has no such job.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.clusters.dispatch import CHECK, chosen
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServerError, say
from agents.shared.kueue import API

LOST_S = 600.0
"""Seconds without a connection, and so without a renewed Lease, after which the jobs of a cluster have ended:
those after which Kueue itself starts them elsewhere (`workerLostTimeout`)."""
_NOT_FOUND = 404
_TIMEOUT_S = 5.0
LOOK_S = 15.0
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

    cluster: str
    """Where it was sent."""
    workload: str
    """Path of the Workload, on the manager and on the cluster."""
    owner: str
    """Path of the job."""
    body: Mapping[str, Any]
    """A merge patch of its status, which another object of that name refuses."""


def released(workload: Mapping[str, Any], clusters: Mapping[str, str]) -> Released | None:
    """Return what gives the quota of an evicted Workload back; None: it has none, or may run elsewhere.

    `clusters`: the cluster of each flavor.
    """
    status = workload.get("status") or {}
    conditions = {row["type"] for row in status.get("conditions") or () if row["status"] == "True"}
    if not {"Evicted", "QuotaReserved"} <= conditions or "Finished" in conditions:
        return None
    if not any(row["name"] == CHECK for row in status.get("admissionChecks") or ()):
        return None
    sent = str(status.get("clusterName") or "")
    places = {sent, chosen(status.get("admission") or {}, clusters)} - {"", None}
    if len(places) != 1:
        return None
    (cluster,) = places
    metadata = workload["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        found = _OWNERS.get((owner["apiVersion"].partition("/")[0], owner["kind"]))
        if found and owner.get("controller"):
            api, plural, counts = found
            return Released(
                str(cluster),
                f"{API}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}",
                f"{api}/namespaces/{metadata['namespace']}/{plural}/{owner['name']}",
                {"metadata": {"uid": owner["uid"]}, "status": counts},
            )
    return None


class Absences:
    """Asks each worker for the jobs whose quota Kueue does not give back; each in a thread of its own."""

    def __init__(
        self,
        workers: Sequence[Worker],
        tokens: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.workers = workers
        self._tokens, self._clock = tokens, clock
        self._due = dict.fromkeys((worker.name for worker in workers), 0.0)
        self._absent: dict[str, set[str]] = {}
        """Jobs that a worker did not have in its last look."""

    def look(self, worker: Worker, jobs: Iterable[Released], release: Callable[[Released], None]) -> None:
        """Release those of `jobs` that were sent to a worker, which had neither job nor Workload twice.

        The pods of a job that is deleted get their signal after it.
        """
        token = self._tokens.get(worker.name)
        if token is None or self._clock() < self._due[worker.name]:
            return
        api = WorkerApi(worker, token, _TIMEOUT_S)
        before, absent = self._absent.pop(worker.name, set()), set()
        try:
            for job in jobs:
                if job.cluster != worker.name or not _is_absent(api, job.owner, job.workload):
                    continue
                uid = str(job.body["metadata"]["uid"])
                absent.add(uid)
                if uid in before:
                    release(job)
        except (ApiServerError, OSError) as error:
            say(f"jobs that cluster {worker.name} may have ended: {error}")
        self._absent[worker.name] = absent
        self._due[worker.name] = self._clock() + LOOK_S


def _is_absent(api: WorkerApi, *paths: str) -> bool:
    for path in paths:
        try:
            api.send("GET", path)
        except ApiServerError as error:
            if error.status != _NOT_FOUND:
                raise
        else:
            return False
    return True
