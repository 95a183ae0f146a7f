"""A run of many nodes starts whole or not at all: without quota, without nodes, with borrowed quota."""

import pytest

from components.kubernetes.queueing.kueue import API_VERSION
from components.kubernetes.queueing.quotas import TeamArgs
from infra.launchers import kubernetes
from infra.launchers.runplan import RunPlan
from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster.queues.lab import flavor, machines, queues
from tests.cluster.waiting import eventually

A100 = flavor("a100", "p4d.24xlarge", 2)
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
MACHINES = {"a100": "p4d.24xlarge"}
TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
GANG = RunPlan(
    name="gang", image="example.com/train@sha256:" + "0" * 64, command=("train.py",),
    nodes=2, gpus_per_node=8, cpu=80, memory_gib=900, timeout_s=3600, grace_s=1,
)  # fmt: skip


@pytest.mark.parametrize("form", ["job", "jobset"])
def test_a_gang_without_room_for_all_of_it_starts_none(api: KubernetesApi, form: str) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        lab.submit("Research", "small", gpus=8)
        lab.runs("small")
        bodies: list[Object] = getattr(kubernetes, form)(GANG)
        for body in bodies:
            lab.create(lab.namespaces["Research"], body)
        pods = GANG.name if form == "job" else f"{GANG.name}-node-0"
        lab.jobs[pods] = lab.namespaces["Research"]
        assert "insufficient unused quota" in lab.refusal("gang")
        assert lab.pods(pods) == []
        lab.finish("small")
        assert lab.nodes(pods, 2) == ["a100-0", "a100-1"]


def test_a_gang_that_borrows_comes_and_goes_whole(api: KubernetesApi) -> None:
    teams: list[TeamArgs] = [
        {"name": "Research", "weight": 1, "gpus": {"a100": 8}},
        {"name": "Vision", "weight": 1, "gpus": {"a100": 8}},
    ]
    with machines(api, [A100], MACHINES), queues(api, [A100], teams) as lab:
        lab.submit("Vision", "label", gpus=8)
        lab.runs("label")
        lab.submit("Research", "gang", gpus=8, pods=2)
        lab.refusal("gang")
        assert lab.pods("gang") == []
        lab.finish("label")
        lab.nodes("gang", 2)
        lab.submit("Vision", "owner", gpus=8)
        lab.nodes("owner")
        assert lab.pods("gang") == []
        assert lab.evictions("gang") == {"Preempted": 1}
        lab.finish("owner")
        lab.nodes("gang", 2)


def test_a_gang_with_missing_nodes_is_requeued(api: KubernetesApi) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        api.patch("v1", "Node", "a100-1", {"spec": {"unschedulable": True}})  # as if it had not come
        lab.submit("Research", "gang", gpus=8, pods=2)
        lab.nodes("gang", 1)
        lab.age("gang", "Admitted", 19 * 60)
        lab.submit("Research", "other", gpus=8)
        lab.refusal("other")
        assert lab.admitted("gang")
        lab.age("gang", "Admitted", 20 * 60)
        eventually(lambda: lab.evictions("gang"), "the gang gives up")
        assert lab.evictions("gang") == {"PodsReadyTimeout": 1}
        assert lab.nodes("other") == ["a100-0"]
        assert lab.pods("gang") == []
        lab.finish("other")
        api.patch("v1", "Node", "a100-1", {"spec": {"unschedulable": False}})
        lab.again("gang")
        assert lab.nodes("gang", 2) == ["a100-0", "a100-1"]
        assert not lab.job("gang")["status"].get("failed")


def test_a_gang_that_restarts_after_a_part_of_it_has_succeeded_can_be_stopped(api: KubernetesApi) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        space, jobs = lab.namespaces["Research"], ["gang-node-0", "gang-node-1"]
        (body,) = (one for one in kubernetes.jobset(GANG) if one["kind"] == "JobSet")
        (row,) = body["spec"]["replicatedJobs"]
        row["replicas"] = len(jobs)
        row["template"]["spec"] |= {"parallelism": 1, "completions": 1, "backoffLimit": 0}
        row["template"]["spec"].pop("podFailurePolicy", None)
        body["spec"]["failurePolicy"] = {"maxRestarts": 1}
        lab.create(space, body)
        lab.jobs |= dict.fromkeys(jobs, space)

        def status() -> Object:
            return dict(api.get(*JOB_SET, "gang", space).get("status") or {})

        for name, phase in zip(jobs, ("Succeeded", "Failed"), strict=True):
            lab.nodes(name)
            (pod,) = lab.pods(name)
            end = {"status": {"phase": phase}}
            api.patch("v1", "Pod", pod["metadata"]["name"], end, space, subresource="status")
            if phase == "Succeeded":
                eventually(lambda: status()["replicatedJobsStatus"][0]["succeeded"], status)
        eventually(lambda: status().get("restarts"), status)
        for name in jobs:
            lab.nodes(name)
        workload = lab.workload("gang")["metadata"]["name"]
        api.patch(API_VERSION, "Workload", workload, {"spec": {"active": False}}, space)
        eventually(lambda: not lab.admitted("gang"), lambda: lab.workload("gang"))
        assert not any(map(lab.pods, jobs))
