"""The composed gate of a stack without a cluster: machine, identity and schedule."""

import datetime
import functools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from components.aws.validation.alert_topic import ENCRYPTION_KEY
from infra import cost
from infra.catalog.aws import facts
from infra.launchers import runplan
from infra.launchers.aws import sagemaker
from infra.stackspec.stack import JOB_STARTUP_S
from tests.components.graph import Graph
from tests.stacks.composition.composed import composed, stack_spec

PAIR = ("small", "aws")
_REPEATED = "dev-smoke-repeated"


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
    request = sagemaker.training_job(plan)
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


@pytest.mark.parametrize(
    ("machine", "disk_gb", "keyed"), [("ml.g4dn.xlarge", 125, False), ("ml.m5.xlarge", 200, True)]
)
def test_its_disk_is_one_that_the_service_accepts_for_the_machine(
    machine: str, disk_gb: int, keyed: bool
) -> None:
    """Local disks are all that a machine has, and accept no key: aws/sagemaker-python-sdk issue 4939."""
    graph = composed(PAIR, lambda spec: spec["layout"]["machines"][0].update({"machine": machine}))
    resources = sagemaker.training_job(runplan.parse(gate(graph)["run"]))["ResourceConfig"]
    assert resources["VolumeSizeInGB"] == disk_gb
    assert ("VolumeKmsKeyId" in resources) is keyed


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


def test_a_schedule_starts_the_same_job_and_reports_what_it_found() -> None:
    graph = made("0 5 * * 1")
    schedule = graph.find("Schedule")
    assert schedule["scheduleExpression"] == "cron(0 5 ? * MON *)"
    assert schedule["target"]["arn"].endswith(":sagemaker:createTrainingJob")
    request = json.loads(schedule["target"]["input"])
    assert request == {"TrainingJobName": "smoke-<aws.scheduler.execution-id>"}
    assert json.loads(gate(graph)["scheduled_plan"])["alert_topic_arn"]
    assert any("sns:Publish" in one["Action"] for one in statements(graph, "dev-smoke-data"))
    assert schedule["target"]["retryPolicy"] == {"maximumRetryAttempts": 0}
    start = statements(graph, "dev-smoke-repeated-start")
    assert [one["Action"] for one in start] == [
        ["sagemaker:CreateTrainingJob", "sagemaker:AddTags"],
        ["iam:PassRole"],
    ]
    assert start[0]["Resource"][0].endswith(":training-job/smoke-*")


def test_the_service_takes_the_role_of_a_schedule_for_its_group() -> None:
    """The source that it names is the group, never the schedule (user guide, confused deputy prevention)."""
    graph = made("0 5 * * 1")
    (trust,) = json.loads(graph.find("iam/role:Role", "smoke-repeated-role")["assumeRolePolicy"])["Statement"]
    (group,) = graph.all("ScheduleGroup")
    assert trust["Condition"]["ArnLike"]["aws:SourceArn"].endswith(f":{group}")
    assert graph.find("Schedule")["groupName"] == group
    assert "ScheduleGroup:dev-smoke-repeated-group" in graph.waits_for("Role:dev-smoke-repeated-role")


@pytest.mark.parametrize(
    "of, metric, counted",
    [
        ("dropped", ("AWS/Scheduler", "InvocationDroppedCount"), ("ScheduleGroup", f"{_REPEATED}-group")),
        ("ended", ("AWS/Events", "TriggeredRules"), ("RuleName", f"{_REPEATED}-ended")),
    ],
)
def test_what_does_not_start_or_ends_badly_is_reported_to_people(
    of: str, metric: tuple[str, str], counted: tuple[str, str]
) -> None:
    graph = made("0 5 * * 1")
    alarm = graph.find("MetricAlarm", f"{_REPEATED}-{of}")
    assert (alarm["namespace"], alarm["metricName"]) == metric
    assert alarm["dimensions"] == dict([counted])
    # One failure is reported; missing data is no alarm: success has no samples.
    assert (alarm["statistic"], alarm["threshold"], alarm["comparisonOperator"]) == (
        *("Sum", 0, "GreaterThanThreshold"),
    )
    assert alarm["treatMissingData"] == "notBreaching" and alarm["evaluationPeriods"] == 1
    assert [one.rpartition(":")[2] for one in alarm["alarmActions"]] == ["dev-training-alerts-topic"]


def test_the_topic_of_alarms_has_a_key_that_alarms_may_use() -> None:
    graph = made("0 5 * * 1")
    topic = graph.find("sns/topic:Topic", "training-alerts-topic")
    assert topic["kmsMasterKeyId"] not in ("", ENCRYPTION_KEY)
    (key,) = [one for name, one in graph.all("kms/key:Key").items() if "training-alerts" in name]
    assert "cloudwatch.amazonaws.com" in key["policy"]
    assert made().find("sns/topic:Topic", "training-alerts-topic")["kmsMasterKeyId"] == ENCRYPTION_KEY


def test_a_validation_is_reported_from_other_jobs_by_its_role() -> None:
    graph = made("0 5 * * 1")
    pattern = json.loads(graph.find("EventRule", f"{_REPEATED}-ended")["eventPattern"])
    request = sagemaker.training_job(runplan.parse(gate(graph)["run"]))
    assert pattern["detail"]["RoleArn"] == [request["RoleArn"]]


@pytest.mark.parametrize("schedule", [None, "0 5 * * 1"])
def test_keys_are_priced_and_rights_are_known(schedule: str | None) -> None:
    graph = made(schedule)
    spec = stack_spec(PAIR, lambda wanted: wanted["smoke"].update({"schedule": schedule}))
    names = {item.name for item in cost.estimate(spec, datetime.date(2026, 11, 26)).items}
    assert f"KMS keys ({len(graph.all('kms/key:Key'))})" in names
    types = {asked.type for asked in graph.cloud.asked if asked.type.startswith("aws:")}
    assert types <= set(facts.permissions)


def test_a_stack_without_a_gate_has_no_job() -> None:
    graph = composed(PAIR, lambda spec: spec["smoke"].update({"enabled": False}))
    assert graph.all("JobGate") == {}


def test_days_of_the_month_and_of_the_week_are_not_both_named() -> None:
    with pytest.raises(Exception, match="not both"):
        stack_spec(PAIR, lambda spec: spec["smoke"].update({"schedule": "0 5 1 * 1"}))
