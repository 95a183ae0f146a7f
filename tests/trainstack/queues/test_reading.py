"""Responses and denials of a cluster."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from infra.clouds.kubectl import ApiResponse, ClusterApi
from infra.errors import UserError
from tests.trainstack.queues.samples import NOW, hours
from trainstack.queues import objects
from trainstack.queues.reading import read
from trainstack.queues.state import GPU, Refusal, State

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
PLACES = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/team-red/localqueues/default/pendingworkloads"
AT = "2026-11-25T12:00:00Z"
FORBIDDEN = ApiResponse(403, {"reason": "Forbidden", "message": "not yours"})
DOOR = {
    "metadata": {"name": "default", "namespace": "team-red"},
    "spec": {"clusterQueue": "team-red", "stopPolicy": "None"},
}


def workload(**more: Any) -> dict[str, Any]:
    about = {"name": "job-a-1", "namespace": "team-red", "creationTimestamp": AT}
    owner = {"ownerReferences": [{"name": "a", "uid": "u1"}]}
    pod = {"containers": [{"resources": {"requests": {"cpu": "500m"}, "limits": {GPU: "4"}}}]}
    spec = {"queueName": "default", "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}]}
    return {"metadata": {**about, **owner}, "spec": {**spec, **more.pop("spec", {})}, "status": more}


class Scripted:
    """A cluster that answers from a table, and knows nothing else."""

    server = "https://example.com"

    def __init__(self, answers: Mapping[str, ApiResponse]) -> None:
        self.answers = answers

    def get(self, path: str, accept: str = "", **query: str) -> ApiResponse:
        return self.answers.get(path, ApiResponse(200, {"items": []}))


def asked(answers: Mapping[str, ApiResponse], namespace: str | None = None) -> State:
    return read(cast(ClusterApi, Scripted(answers)), namespace)


def items(*bodies: Any) -> ApiResponse:
    return ApiResponse(200, {"items": list(bodies)})


def test_a_member_is_answered_about_the_namespace_and_the_rest_is_said() -> None:
    place = {"metadata": {"name": "job-a-1", "namespace": "team-red"}, "positionInClusterQueue": 3}
    found = asked({
        f"{KUEUE}/workloads": FORBIDDEN,
        f"{KUEUE}/namespaces/team-red/workloads": items(workload()),
        f"{KUEUE}/localqueues": FORBIDDEN,
        f"{KUEUE}/namespaces/team-red/localqueues": items(DOOR),
        "/api/v1/nodes": FORBIDDEN,
        PLACES: items(place),
    }, "team-red")  # fmt: skip
    (job,) = found.jobs
    assert (job.name, job.cluster_queue, job.gpus) == ("a", "team-red", 8)
    assert job.total["cpu"] == 1
    assert not found.whole and found.nodes is None and found.cluster_queues == {}
    assert found.places == {("team-red", "job-a-1"): 3}
    assert found.refusals == (Refusal("nodes", "Forbidden"),)


def test_unreported_places_are_noted_and_stopped_queues_not_requested() -> None:
    jobs, silent = items(workload()), ApiResponse(503, {"reason": "ServiceUnavailable", "message": "down"})
    found = asked({f"{KUEUE}/workloads": jobs, f"{KUEUE}/localqueues": items(DOOR), PLACES: silent})
    (refusal,) = found.refusals
    assert "team-red/default" in str(refusal) and "ServiceUnavailable: down" in str(refusal)
    stopped = {**DOOR, "spec": {**DOOR["spec"], "stopPolicy": "Hold"}}
    found = asked({f"{KUEUE}/workloads": jobs, f"{KUEUE}/localqueues": items(stopped), PLACES: silent})
    assert not found.refusals and found.local_queues[0].stopped


@pytest.mark.parametrize(
    ("answer", "namespace", "said"),
    [
        (ApiResponse(404, {"reason": "NotFound"}), None, "kueue-missing"),
        (FORBIDDEN, None, "cluster-access-denied"),
        (ApiResponse(0, {"reason": "NoAnswer", "message": "refused"}), "team-red", "NoAnswer: refused"),
    ],
)
def test_a_cluster_without_workloads_is_an_error(
    answer: ApiResponse, namespace: str | None, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        asked({f"{KUEUE}/workloads": answer}, namespace)


def test_what_a_job_counts_as_is_kueues_sum_once_it_made_one() -> None:
    requests = [{"name": "main", "resources": {GPU: "8", "cpu": "3", "memory": "4Gi"}}]
    (pods,) = objects.job(workload(resourceRequests=requests), {}, {}).pod_sets
    assert (pods.count, pods.gpus) == (2, 4)
    assert pods.each == {GPU: 4, "cpu": Decimal("1.5"), "memory": 2 * 1024**3}
    given = {"name": "main", "count": 1, "flavors": {GPU: "a100"}, "resourceUsage": {GPU: "4"}}
    job = objects.job(workload(admission={"clusterQueue": "q", "podSetAssignments": [given]}), {}, {})
    assert (job.cluster_queue, job.gpus) == ("q", 4)
    assert job.assigned == {("a100", GPU): Decimal(4)}


def test_a_job_ends_at_the_first_of_its_deadlines_and_earlier_attempts_count_for_kueue_alone() -> None:
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": AT}
    limited = workload(
        spec={"maximumExecutionTimeSeconds": 7200}, accumulatedPastExecutionTimeSeconds=1800,
        conditions=[admitted],
    )  # fmt: skip
    job = objects.job(limited, {}, {})
    assert (job.longest, job.deadline) == (hours(1.5), NOW + hours(1.5))
    run = {"spec": {"activeDeadlineSeconds": 3600}, "status": {"startTime": "2026-11-25T12:10:00Z"}}
    job = objects.job(limited, {}, {"u1": run})
    assert (job.longest, job.deadline) == (hours(1), NOW + hours(1) + timedelta(minutes=10))
    waiting = objects.job(workload(spec={"maximumExecutionTimeSeconds": 60}), {}, {"u1": run})
    assert (waiting.longest, waiting.deadline) == (timedelta(minutes=1), None)
    assert objects.job(workload(conditions=[admitted]), {}, {}).deadline is None


def test_pods_that_ended_hold_nothing_and_nodes_that_take_none_are_not_usable() -> None:
    spec = {"nodeName": "n", "containers": [{"resources": {"limits": {GPU: "2"}}}]}
    about = {"namespace": "x", "name": "p", "annotations": {objects.WORKLOAD: "job-a-1"}}
    found = objects.pod({"metadata": about, "spec": spec, "status": {"phase": "Running"}})
    assert found is not None and (found.workload, found.node, found.gpus) == ("job-a-1", "n", 2)
    assert objects.pod({"metadata": about, "spec": spec, "status": {"phase": "Succeeded"}}) is None
    status = {"allocatable": {GPU: "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    node = {"metadata": {"name": "n"}, "status": status}
    assert objects.node(node).usable and objects.node(node).gpus == 8
    assert not objects.node({**node, "spec": {"unschedulable": True}}).usable
