"""The validation as a run plan, wherever it is started."""

from dataclasses import replace
from typing import Any

import pytest

from infra.launchers import kubernetes, pods, runplan
from infra.launchers.registry import LAUNCHERS
from infra.launchers.runplan import RunPlan, RunPlanError
from infra.launchers.validation import ValidationFiles, validation

RUN = RunPlan(
    name="validation",
    image="registry.example/pytorch@sha256:" + "00" * 32,
    command=(),
    nodes=2,
    gpus_per_node=8,
    devices=pods.efa(4),
    cpu=80,
    memory_gib=900,
    namespace="trainstack-smoke",
    queue="smoke",
    timeout_s=900,
    instance_type="p4d.24xlarge",
)


def variables(body: dict[str, Any]) -> dict[str, str]:
    (container,) = body["spec"]["template"]["spec"]["containers"]
    return {row["name"]: row.get("value", "") for row in container["env"]}


@pytest.mark.parametrize("kind", ["job", "jobset", "trainjob", "pytorchjob", "mpijob", "sbatch", "torchrun"])
def test_it_is_a_run_like_any_other(kind: str) -> None:
    plan = validation(RUN, ValidationFiles())
    runplan.check(plan)
    text = LAUNCHERS[kind].render(plan)
    assert "smoke_training.zip" in text and "torchrun" not in text.replace("torchrun.log", "")
    assert "/checkpoints/smoke/validation" in text


def test_every_run_of_a_schedule_has_a_folder_of_its_own() -> None:
    plan = validation(RUN, ValidationFiles(config_map="validation", claim="checkpoints"))
    _, job = kubernetes.job(plan)
    _, cron = kubernetes.cron_job(plan, "@daily")
    assert variables(job)["WORK_DIR"] == "/checkpoints/smoke/validation"
    assert variables(cron["spec"]["jobTemplate"])["WORK_DIR"] == "/checkpoints/smoke/$(JOB_NAME)"


def test_a_config_map_is_for_clusters_only() -> None:
    with pytest.raises(RunPlanError, match="ConfigMaps"):
        LAUNCHERS["sbatch"].render(validation(RUN, ValidationFiles(config_map="validation")))


def test_only_nodes_with_adapters_have_nccl_say_which_it_uses() -> None:
    assert validation(RUN, ValidationFiles()).env["NCCL_DEBUG"] == "INFO"
    assert "NCCL_DEBUG" not in validation(replace(RUN, devices={}), ValidationFiles()).env
    claimed = replace(RUN, devices={}, device_claims={"rdma": "smoke-h200"})
    assert validation(claimed, ValidationFiles()).env["NCCL_DEBUG"] == "INFO"
