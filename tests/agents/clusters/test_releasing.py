"""Quota of jobs that were on a lost cluster."""

from typing import Any

import pytest

from agents.clusters.controller import Dispatcher
from agents.clusters.dispatch import CHECK
from agents.clusters.fence import AFTER_S, fences
from agents.clusters.leases import VIEW_S
from agents.clusters.releasing import LOST_S, released
from components.kubernetes.queueing.kueue_values import WORKER_LOST_TIMEOUT
from tests.agents.clusters.test_controller import Server

CLUSTERS = {"east-l4": "east", "west-l4": "west"}
BATCH, JOBSET, TRAINER = "batch/v1", "jobset.x-k8s.io/v1alpha2", "trainer.kubeflow.org/v1alpha1"


def workload(
    kind: str = "Job", version: str = BATCH, *conditions: str, flavor: str = "west-l4", **more: Any
) -> dict[str, Any]:
    """An evicted Workload that still has its quota on `west`."""
    true = conditions or ("Evicted", "QuotaReserved")
    owner = {"apiVersion": version, "kind": kind, "name": "job", "uid": "u1", "controller": True}
    metadata = {"name": "w", "namespace": "team", "resourceVersion": "7", "ownerReferences": [owner]}
    status = {
        "conditions": [{"type": one, "status": "True"} for one in true],
        "admissionChecks": [{"name": CHECK, "state": "Retry"}],
        "admission": {"podSetAssignments": [{"flavors": {"cpu": flavor}}]},
    }
    return {"metadata": metadata, "status": {**status, **more}}


@pytest.mark.parametrize(
    ("kind", "version", "plural", "counts"),
    [
        ("Job", BATCH, "jobs", {"active": 0, "ready": 0}),
        ("JobSet", JOBSET, "jobsets", {"replicatedJobsStatus": None}),
        ("TrainJob", TRAINER, "trainjobs", {"jobsStatus": None}),
    ],
)
def test_an_evicted_job_of_a_lost_cluster_has_no_pods(
    kind: str, version: str, plural: str, counts: dict[str, Any]
) -> None:
    found = released(workload(kind, version), CLUSTERS, {"west"})
    assert found is not None
    assert found.path == f"/apis/{version}/namespaces/team/{plural}/job/status"
    assert found.body == {"metadata": {"uid": "u1"}, "status": counts}


@pytest.mark.parametrize(
    "given",
    [
        workload(flavor="east-l4"),
        workload(flavor="other"),
        workload("Job", BATCH, "QuotaReserved"),
        workload("Job", BATCH, "Evicted"),
        workload("Job", BATCH, "Evicted", "QuotaReserved", "Finished"),
        # Sent to another cluster than that of its quota.
        workload(clusterName="east"),
        workload(admissionChecks=[]),
        workload("Pod", "v1"),
    ],
)
def test_no_other_job_is_touched(given: dict[str, Any]) -> None:
    assert released(given, CLUSTERS, {"west"}) is None


class Lost(Server):
    """A manager to whose cluster `west` Kueue has no connection; keeps changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        self.changed.append(path)
        return 200, {}


def test_quota_comes_back_only_when_the_cluster_has_ended_the_job_itself() -> None:
    now, server = [1000.0], Lost()
    dispatcher = Dispatcher(server, clock=lambda: now[0])
    for now[0] in (1000.0, 999.0 + LOST_S):
        dispatcher.connect()
        dispatcher.look()
        dispatcher.handle(workload(flavor="west"))
    assert server.changed == []
    now[0] = 1000.0 + LOST_S
    dispatcher.connect()
    dispatcher.handle(workload(flavor="east"))
    assert server.changed == []
    dispatcher.handle(workload(flavor="west"))
    assert server.changed == ["/apis/batch/v1/namespaces/team/jobs/job/status"]


def test_the_cluster_ends_its_jobs_before_that_also_after_an_outage_of_its_api_server() -> None:
    assert int(WORKER_LOST_TIMEOUT.removesuffix("m")) * 60 == LOST_S
    # A Lease may be renewed for a while after the connection was lost.
    assert fences(LOST_S - VIEW_S, 0, AFTER_S)
