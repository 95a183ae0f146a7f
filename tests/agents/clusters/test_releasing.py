"""Quota of jobs that were on a lost cluster."""

from typing import Any

import pytest

from agents.clusters.controller import Dispatcher
from agents.clusters.dispatch import CHECK
from agents.clusters.fence import AFTER_S, fences
from agents.clusters.leases import VIEW_S
from agents.clusters.releasing import LOOK_S, LOST_S, Absences, released
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServerError
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
def test_an_evicted_job_that_has_ended_has_no_pods(
    kind: str, version: str, plural: str, counts: dict[str, Any]
) -> None:
    found = released(workload(kind, version), CLUSTERS)
    assert found is not None
    assert found.cluster == "west"
    assert found.owner == f"/apis/{version}/namespaces/team/{plural}/job"
    assert found.body == {"metadata": {"uid": "u1"}, "status": counts}


@pytest.mark.parametrize(
    "given",
    [
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
    assert released(given, CLUSTERS) is None


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


@pytest.mark.parametrize(
    ("there", "released_again"), [({"jobs", "workloads"}, False), ({"workloads"}, False), (set(), True)]
)
def test_a_connected_cluster_is_asked_whether_it_has_the_job(
    there: set[str], released_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has deleted the job while it was cut off (`fence`)."""

    def send(self: WorkerApi, method: str, path: str, body: object = None) -> dict[str, Any]:
        assert (method, self.worker.name, self.token) == ("GET", "east", "t")
        if path.split("/")[-2] not in there:
            raise ApiServerError(404, "not found")
        return {}

    monkeypatch.setattr(WorkerApi, "send", send)
    server = Lost()
    dispatcher = Dispatcher(server, clock=lambda: 0.0)
    dispatcher.connect()
    dispatcher.look()
    dispatcher.handle(workload(flavor="east"))
    east = Worker("east", "https://east", "", "n", "")
    now = [100.0]
    absences = Absences([east], {"east": "t"}, lambda: now[0])
    absences.look(east, dispatcher.stopping(), dispatcher.release)
    absences.look(east, dispatcher.stopping(), dispatcher.release)
    assert server.changed == [], "its pods get their signal first"
    now[0] += LOOK_S
    absences.look(east, dispatcher.stopping(), dispatcher.release)
    assert bool(server.changed) is released_again
    dispatcher.handle(workload("Job", BATCH, "Admitted", flavor="east"))
    assert dispatcher.stopping() == []
