"""The gate of a stack without a cluster, composed: what it runs on, as whom, and what repeats it."""

import functools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from infra.stackspec.stack import JOB_STARTUP_S
from smoke_training.launchers import managed, runplan
from tests.components.graph import Graph
from tests.stacks.composition.composed import composed, stack_spec

PAIR = ("small", "aws")


@functools.cache
def made(schedule: str | None = None) -> Graph:
    return composed(PAIR, lambda spec: spec["smoke"].update({"schedule": schedule}))


def statements(graph: Graph, name: str) -> list[dict[str, Any]]:
    policies = [json.loads(one["policy"]) for key, one in graph.all("RolePolicy").items() if name in key]
    return [statement for policy in policies for statement in policy["Statement"]]


def gate(graph: Graph) -> Mapping[str, Any]:
    """The dynamic resource, not the component around it."""
    (found,) = [one for name, one in graph.all("JobGate").items() if name.endswith("-run")]
    return found


def test_the_job_is_bought_on_demand_in_the_network_of_the_stack_and_ends_by_itself() -> None:
    spec = stack_spec(PAIR)
    plan = runplan.parse(gate(made())["run"])
    request = managed.sagemaker(plan)
    machine = spec.layout.machines[0]  # type: ignore[union-attr]
    assert request["ResourceConfig"]["InstanceType"] == machine.machine
    assert request["ResourceConfig"]["InstanceCount"] == spec.smoke.nodes == 2
    assert request["EnableManagedSpotTraining"] is False
    assert request["VpcConfig"]["Subnets"] and request["VpcConfig"]["SecurityGroupIds"]
    assert request["OutputDataConfig"]["KmsKeyId"]
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": spec.smoke.timeout_s + JOB_STARTUP_S}
    assert {"Key": "trainstack:stack", "Value": spec.name} in request["Tags"]
    # What the service takes of an environment (botocore 1.44.5, TrainingEnvironmentValue).
    assert max(len(value) for value in request["Environment"].values()) <= 512


def test_its_role_reads_code_and_writes_results_and_nothing_of_people() -> None:
    mine = statements(made(), "dev-smoke-data")
    written = [one for one in mine if "s3:PutObject" in one["Action"]]
    assert [resource.rpartition(":::")[2].partition("/")[2] for resource in written[0]["Resource"]] == [
        "runs/*",
        "mlflow/*",
        "smoke/*",
    ]
    assert not any("teams/" in json.dumps(one) for one in mine)
    assert not any("sns:Publish" in one["Action"] for one in mine)


def test_without_a_schedule_nothing_repeats_it() -> None:
    assert made().all("Schedule") == {}
    assert gate(made())["scheduled_plan"] == ""


def test_a_schedule_starts_the_same_job_and_tells_what_it_found() -> None:
    graph = made("0 5 * * 1")
    schedule = graph.find("Schedule")
    assert schedule["scheduleExpression"] == "cron(0 5 ? * MON *)"
    assert schedule["target"]["arn"].endswith(":sagemaker:createTrainingJob")
    request = json.loads(schedule["target"]["input"])
    assert request == {"TrainingJobName": "smoke-<aws.scheduler.execution-id>"}
    assert json.loads(gate(graph)["scheduled_plan"])["alert_topic_arn"]
    assert any("sns:Publish" in one["Action"] for one in statements(graph, "dev-smoke-data"))
    start = statements(graph, "dev-smoke-repeated-start")
    assert [one["Action"] for one in start] == [
        ["sagemaker:CreateTrainingJob", "sagemaker:AddTags"],
        ["iam:PassRole"],
    ]
    assert start[0]["Resource"][0].endswith(":training-job/smoke-*")


def test_a_stack_without_a_gate_has_no_job() -> None:
    graph = composed(PAIR, lambda spec: spec["smoke"].update({"enabled": False}))
    assert graph.all("JobGate") == {}


def test_days_of_the_month_and_of_the_week_are_not_both_named() -> None:
    with pytest.raises(Exception, match="not both"):
        stack_spec(PAIR, lambda spec: spec["smoke"].update({"schedule": "0 5 1 * 1"}))
