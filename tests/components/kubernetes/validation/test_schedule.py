"""The gate's validation on a schedule: the same run, below all other work, awaited by no deploy."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.validation.gate import SmokeTest
from components.kubernetes.validation.schedule import SmokeSchedule, SmokeScheduleArgs
from smoke_training import plan as plans
from tests.components.graph import Graph, deploy_graph
from tests.components.kubernetes.validation.validations import CLAIMED, NODE, args
from tests.smoke_training import samples

TOPIC = "arn:aws:sns:eu-central-1:111122223333:training-alerts"
PLAN = {key: value for key, value in samples.document().items() if key not in ("schema", "code_sha256")}


def asked(**changes: Any) -> SmokeScheduleArgs:
    run: Any = {**args(), "plan": PLAN, "queue": "smoke-schedule", "priority": "background", **changes}
    return {"schedule": "0 5 * * 1", "run": run, "plan": {"alert_topic_arn": TOPIC}}


def scheduled(given: SmokeScheduleArgs) -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        return {"cron": SmokeSchedule("dev-schedule", given).cron_job}

    return deploy_graph(program)


@pytest.fixture(scope="module")
def made() -> Graph:
    return scheduled(asked())


@pytest.fixture(scope="module")
def cron(made: Graph) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = made.find("CronJob")["spec"]
    return spec


def pod_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = spec["template"]["spec"]
    return found


def test_it_runs_in_turn_never_twice_at_once_and_keeps_a_few(cron: Mapping[str, Any]) -> None:
    assert (cron["schedule"], cron["timeZone"]) == ("0 5 * * 1", "Etc/UTC")
    assert cron["concurrencyPolicy"] == "Forbid"
    assert (cron["successfulJobsHistoryLimit"], cron["failedJobsHistoryLimit"]) == (3, 3)
    assert cron["startingDeadlineSeconds"] == 3600


def test_the_queue_sees_every_run_below_all_other_work(cron: Mapping[str, Any], made: Graph) -> None:
    assert cron["jobTemplate"]["metadata"]["labels"] == {
        "trainstack.dev/run": "smoke-schedule-a100",
        "kueue.x-k8s.io/queue-name": "smoke-schedule",
        "kueue.x-k8s.io/priority-class": "background",
    }
    assert "labels" not in made.find("CronJob")["metadata"], "Kueue knows no CronJobs"


def test_a_run_is_the_gates_run(cron: Mapping[str, Any]) -> None:
    def gate() -> Mapping[str, pulumi.Input[Any]]:
        return {"job": SmokeTest("dev-smoke", asked()["run"]).job_name}

    job = copy.deepcopy(dict(deploy_graph(gate).find("Job", "-job")["spec"]))
    own = copy.deepcopy(dict(cron["jobTemplate"]["spec"]))
    for spec in (job, own):
        # Each run is found below a name of its own.
        del spec["template"]["metadata"]["labels"], pod_of(spec)["affinity"]["podAntiAffinity"]
        del spec["template"]["spec"]["subdomain"]
        container = pod_of(spec)["containers"][0]
        container["env"] = [
            row for row in container["env"] if row["name"] not in ("JOB_NAME", "MASTER_ADDR", "WORK_DIR")
        ]
        code = next(volume for volume in pod_of(spec)["volumes"] if volume["name"] == "code")
        del code["configMap"]
    assert own == job


def test_every_run_finds_its_own_node_0_and_folder(cron: Mapping[str, Any]) -> None:
    rows = pod_of(cron["jobTemplate"]["spec"])["containers"][0]["env"]
    names = [row["name"] for row in rows]
    env = {row["name"]: row for row in rows}
    path = env["JOB_NAME"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.labels['batch.kubernetes.io/job-name']"
    assert env["MASTER_ADDR"]["value"] == "$(JOB_NAME)-0.smoke-schedule-a100.trainstack-smoke.svc"
    assert env["WORK_DIR"]["value"] == "/checkpoints/smoke/$(JOB_NAME)"
    assert names.index("JOB_NAME") < min(names.index("MASTER_ADDR"), names.index("WORK_DIR"))


def test_the_plan_is_one_of_a_run_that_makes_way_and_sends_alerts(made: Graph) -> None:
    config = made.find("ConfigMap")
    plan = plans.parse(config["data"]["plan.json"])
    assert plan.preemptible and plan.alert_topic_arn == TOPIC
    assert plan.accept == ("PASS", "INCONCLUSIVE", "SKIPPED")
    assert (plan.task, plan.nodes, plan.stack) == ("scheduled-validation", 2, "dev-aws")
    volumes = pod_of(made.find("CronJob")["spec"]["jobTemplate"]["spec"])["volumes"]
    (code,) = [volume for volume in volumes if volume["name"] == "code"]
    assert code["configMap"]["name"] == config["metadata"]["name"]
    assert config["metadata"]["name"].startswith("smoke-schedule-a100-") and config["immutable"] is True
    assert {"ConfigMap:dev-schedule-code", "Service:dev-schedule-service"} <= made.edges[
        "CronJob:dev-schedule-cron"
    ]
    service = made.find("Service")
    pods = made.find("CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    assert service["metadata"]["name"] == pods["spec"]["subdomain"]
    assert service["spec"]["selector"] == pods["metadata"]["labels"]


def test_another_plan_is_another_config_map_and_the_same_cron_job(made: Graph) -> None:
    other = scheduled(asked(plan={**PLAN, "min_scaling_efficiency": 0.9}))
    assert other.find("ConfigMap")["metadata"]["name"] != made.find("ConfigMap")["metadata"]["name"]
    assert (
        other.find("CronJob")["metadata"]["name"]
        == made.find("CronJob")["metadata"]["name"]
        == "smoke-schedule-a100"
    )
    assert made.outputs["cron"] == "smoke-schedule-a100"


def test_devices_by_claim_come_from_the_gates_template() -> None:
    graph = scheduled(asked(node={**NODE, "fabric": CLAIMED}))
    pod = pod_of(graph.find("CronJob")["spec"]["jobTemplate"]["spec"])
    assert pod["resourceClaims"] == [{"name": "efa", "resourceClaimTemplateName": "smoke-a100"}]
    assert graph.all("ResourceClaimTemplate") == {}, "it is there already"


def test_without_a_topic_the_plan_names_none() -> None:
    given = asked()
    del given["plan"]
    assert "alert_topic_arn" not in json.loads(scheduled(given).find("ConfigMap")["data"]["plan.json"])
