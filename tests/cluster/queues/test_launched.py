"""What our launchers make of a run, under Kueue and the real Job controller: stopped, it goes on later."""

from typing import Any

from components.kubernetes.queueing.quotas import TeamArgs
from rehearsal.controlplane.api import Api
from smoke_training.launchers import kubernetes
from smoke_training.launchers.runplan import RunPlan
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import eventually

TEAM: list[TeamArgs] = [{"name": "Research", "weight": 1}]
A100 = flavor("a100", "p4d.24xlarge", 2)
MACHINES = {"a100": "p4d.24xlarge"}
PLAN = RunPlan(
    name="train", image="example.com/train@sha256:" + "0" * 64, command=("train.py",),
    nodes=2, gpus_per_node=8, cpu=80, memory_gib=900, timeout_s=3600, grace_s=1,
)  # fmt: skip


def launch(lab: Lab, plan: RunPlan, **notes: str) -> None:
    """Start a run as the launcher renders it; `notes` say how its fake pods live."""
    for body in kubernetes.job(plan):
        template: Any = body["spec"].get("template")
        if template:
            template["metadata"]["annotations"] = {
                f"trainstack.dev/{key.replace('_', '-')}": value for key, value in notes.items()
            }
        lab.create(lab.namespaces["Research"], body)


def failed(lab: Lab, name: str) -> list[str]:
    """Why a Job failed, [] where it did not."""
    rows = lab.job(name)["status"].get("conditions") or ()
    return [f"{row['reason']}: {row['message']}" for row in rows if row["type"] in ("FailureTarget", "Failed")]


def test_a_preempted_run_is_queued_again_however_long_its_pods_take_to_go(api: Api) -> None:
    with machines(api, [A100], MACHINES), queues(api, [A100], TEAM) as lab:
        launch(lab, PLAN, removal_seconds="4s")
        lab.nodes("train", 2)
        lab.submit("Research", "urgent", gpus=8, priority="production", seconds=6)
        lab.runs("urgent")
        assert lab.evictions("train") == {"Preempted": 1}
        eventually(lambda: not lab.job("train")["status"].get("terminating"), "its pods are gone")
        assert failed(lab, "train") == []
        lab.nodes("train", 2)
        assert failed(lab, "train") == []
