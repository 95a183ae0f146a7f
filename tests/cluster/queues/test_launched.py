"""Runs of our launchers under Kueue and the real Job controller: a stopped run resumes later."""

from typing import Any

import pytest

from components.kubernetes.queueing.quotas import TeamArgs
from infra.launchers import kubernetes
from infra.launchers.runplan import RunPlan
from rehearsal.controlplane.api import KubernetesApi
from tests.cluster.queues.lab import Lab, flavor, lost, machines, queues
from tests.cluster.waiting import eventually

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
A100 = flavor("a100", "p4d.24xlarge", 3)
MACHINES = {"a100": "p4d.24xlarge"}
PLAN = RunPlan(
    name="train", image="example.com/train@sha256:" + "0" * 64, command=("train.py",),
    nodes=2, gpus_per_node=8, cpu=80, memory_gib=900, timeout_s=3600, grace_s=1,
)  # fmt: skip


def launch(lab: Lab, plan: RunPlan, form: str = "job", **notes: str) -> str:
    """Start a run as the launcher renders it; its Job. `notes` say how its fake pods live."""
    for body in getattr(kubernetes, form)(plan):
        template: Any = body["spec"].get("template")
        if template:
            template["metadata"]["annotations"] = {
                f"trainstack.dev/{key.replace('_', '-')}": value for key, value in notes.items()
            }
        lab.create(lab.namespaces["Research"], body)
    job = plan.name if form == "job" else f"{plan.name}-node-0"
    lab.jobs[job] = lab.namespaces["Research"]
    return job


def failed(lab: Lab, name: str) -> list[str]:
    """Why a Job failed, [] where it did not."""
    rows = lab.job(name)["status"].get("conditions") or ()
    return [
        f"{row['reason']}: {row['message']}" for row in rows if row["type"] in ("FailureTarget", "Failed")
    ]


def test_a_preempted_run_is_queued_again_however_long_its_pods_take_to_go(api: KubernetesApi) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        launch(lab, PLAN, removal_seconds="4s")
        lab.nodes("train", 2)
        lab.submit("Research", "urgent", gpus=8, pods=2, priority="production", seconds=6)
        lab.runs("urgent")
        assert lab.evictions("train") == {"Preempted": 1}
        eventually(lambda: not lab.job("train")["status"].get("terminating"), "its pods are gone")
        assert failed(lab, "train") == []
        lab.nodes("train", 2)
        assert failed(lab, "train") == []


@pytest.mark.parametrize("form", ["job", "jobset"])
def test_a_run_of_which_a_node_is_lost_is_queued_again_and_runs_elsewhere(
    api: KubernetesApi, form: str
) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        job = launch(lab, PLAN, form)
        gone, kept = lab.nodes(job, 2)
        # Before, it would be a start that failed.
        eventually(
            lambda: lab.condition("train", "PodsReady").get("status") == "True",
            lambda: f"all pods are ready: {lab.history('train', job)}",
        )
        with lost(api, gone):
            eventually(lambda: lab.condition("train", "PodsReady").get("reason") == "WaitForRecovery")
            lab.age("train", "PodsReady", 2 * 60)
            lab.submit("Research", "other", gpus=8, pods=2)
            lab.refusal("other")
            assert lab.evictions("train") == {}
            lab.finish("other")
            lab.age("train", "PodsReady", 3 * 60)
            eventually(lambda: lab.evictions("train"), "the run is evicted")
            assert lab.evictions("train") == {"PodsReadyTimeout": 1}
            eventually(lambda: lab.pods(job) == [], "its pods are stopped")
            lab.again("train")
            (spare,) = {"a100-0", "a100-1", "a100-2"} - {gone, kept}
            assert lab.nodes(job, 2) == sorted([kept, spare])
            assert failed(lab, job) == []
