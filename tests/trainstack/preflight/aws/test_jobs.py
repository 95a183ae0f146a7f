"""Checks of an account for a stack without a cluster."""

import re
from dataclasses import replace
from typing import Any

import pytest

from infra import stackspec
from infra.jobs.aws.account_logs import GROUPS
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.aws.purchases import TrainingPlan
from infra.stackspec.layouts import SmallLayout
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Cloud, asked
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import JOB_CHECKS, identity, jobs, permissions
from trainstack.preflight.aws.account import Account
from trainstack.preflight.aws.deployment import preflight_of

SMALL = "small-aws"


def account(cloud: Any, schedule: str | None = None, **layout: Any) -> Account:
    spec = stackspec.load_file(SMALL).spec
    changed = spec.layout.model_copy(update=layout)
    smoke = spec.smoke.model_copy(update={"schedule": schedule})
    spec = spec.model_copy(update={"smoke": smoke, "layout": changed})
    assert isinstance(spec.layout, SmallLayout) and isinstance(spec.on, AwsSpec)
    return Account(spec, spec.layout, spec.on, cloud)


@pytest.mark.parametrize(
    ("settings", "state", "commands"),
    [
        (None, State.NOTE, ["create-log-group", "put-retention-policy"]),
        ({}, State.NOTE, ["put-retention-policy"]),
        ({"kmsKeyId": "arn:aws:kms:us-west-2:111122223333:key/1"}, State.NOTE, ["put-retention-policy"]),
        ({"retentionInDays": 7}, State.READY, []),
    ],
)
def test_log_groups_of_the_account_never_stop_up_and_are_never_deleted(
    settings: dict[str, Any] | None, state: State, commands: list[str]
) -> None:
    cloud = Cloud()
    for name in GROUPS:
        arn = f"arn:aws:logs:us-west-2:{ACCOUNT}:log-group:{name}"
        others = {"logGroupName": f"{name}-other", "arn": f"{arn}-other:*", "retentionInDays": 1}
        rows = [
            others,
            *([] if settings is None else [{"logGroupName": name, "arn": f"{arn}:*", **settings}]),
        ]
        cloud.answers("logs", "describe_log_groups", {"logGroups": rows}, logGroupNamePrefix=name)
    found = asked(jobs.log_groups, account(cloud))
    assert [answer.state for answer in found] == [state, state]
    for answer, name in zip(found, GROUPS, strict=True):
        assert re.findall(r"aws logs (\S+)", answer.fix) == commands and (name in answer.fix) is bool(
            commands
        )


def test_up_does_not_ask_for_log_groups_of_the_account() -> None:
    assert "job-logs" not in preflight_of(stackspec.load_file(SMALL).spec).before_up


def planned(found: dict[str, Any] | None, max_nodes: int = 2) -> Answer:
    """The answer about a plan of which the account says this; None: there is none."""
    asking = account(cloud := Cloud())
    first, *rest = asking.layout.machines  # type: ignore[union-attr]
    bought = TrainingPlan(
        kind="training_plan", arn=f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-plan/dec"
    )
    machine = first.model_copy(
        update={"machine": "ml.p5.48xlarge", "purchase": bought, "max_nodes": max_nodes}
    )
    layout = asking.layout.model_copy(update={"machines": (machine, *rest)})
    asking = replace(asking, layout=layout)
    if found is None:
        cloud.refuses("sagemaker", "describe_training_plan", "ResourceNotFound", "no such plan")
    else:
        known = {"TrainingPlanArn": bought.arn, "TrainingPlanName": "dec", **found}
        cloud.answers("sagemaker", "describe_training_plan", known, TrainingPlanName="dec")
    (answer,) = asked(jobs.plans, asking)
    return answer


PLAN = {
    "Status": "Active",
    "TargetResources": ["training-job"],
    "TotalInstanceCount": 2,
    "ReservedCapacitySummaries": [
        {
            "ReservedCapacityArn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:reserved-capacity/one",
            "InstanceType": "ml.p5.48xlarge",
            "TotalInstanceCount": 2,
            "Status": "Active",
        }
    ],
}


@pytest.mark.parametrize("status", ["Active", "Scheduled"])
def test_a_training_plan_that_jobs_can_use_is_ready(status: str) -> None:
    assert planned({**PLAN, "Status": status}).state is State.READY


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Status": "Expired"}, "is Expired"),
        ({"TargetResources": ["hyperpod-cluster"]}, "is for hyperpod-cluster"),
        ({"ReservedCapacitySummaries": []}, "not ml.p5.48xlarge"),
        ({"TotalInstanceCount": 1}, "has 1 machines"),
    ],
)
def test_a_training_plan_that_no_job_can_use_is_short(changes: dict[str, Any], said: str) -> None:
    answer = planned({**PLAN, **changes})
    assert answer.state is State.SHORT and said in answer.text


def test_a_training_plan_that_is_not_there_is_short() -> None:
    assert "not exist" in planned(None).text


def test_a_deployer_administers_no_cluster() -> None:
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    (answer,) = asked(identity.caller, account(cloud))
    assert answer.state is State.READY and "no cluster" in answer.text


def test_only_what_the_stack_makes_is_asked_for() -> None:
    actions = {action.partition(":")[0] for action in permissions.actions(account(Cloud()).spec)}
    assert {"sagemaker", "lambda", "events", "budgets"} <= actions
    assert not actions & {"eks", "rds", "autoscaling", "secretsmanager", "fsx", "elasticfilesystem"}
    assert {"job-quotas", "job-logs"} <= set(JOB_CHECKS)


def test_a_repetition_takes_a_schedule_an_alarm_and_their_rights() -> None:
    without, more = (permissions.actions(account(Cloud(), when).spec) for when in (None, "0 5 * * 1"))
    added = {*more} - {*without}
    assert {action.partition(":")[0] for action in added} == {"cloudwatch", "scheduler"}
    assert added >= {"cloudwatch:PutMetricAlarm", "scheduler:CreateSchedule", "scheduler:CreateScheduleGroup"}
