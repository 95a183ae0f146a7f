"""What an account is asked for a stack without a cluster."""

from typing import Any

import pytest

from infra import stackspec
from infra.preflight.answers import Answer, State
from infra.preflight.aws import JOB_CHECKS, identity, jobs, permissions
from infra.preflight.aws.account import Account
from infra.stackspec.clouds import AwsSpec
from infra.stackspec.layouts import SmallLayout
from tests.infra.preflight.asking import ACCOUNT, ME, Cloud, asked, states

SPOT = "ml.g6.xlarge for spot training job usage"
ON_DEMAND = "ml.g6.12xlarge for training job usage"


def account(cloud: Cloud) -> Account:
    spec = stackspec.load_file("small-aws").spec
    assert isinstance(spec.layout, SmallLayout) and isinstance(spec.on, AwsSpec)
    return Account(spec, spec.layout, spec.on, cloud)


def quotas(defaults: dict[str, float], given: dict[str, float]) -> list[Answer]:
    cloud = Cloud()
    for operation, values in (("list_aws_default_service_quotas", defaults), ("list_service_quotas", given)):
        rows: list[dict[str, Any]] = [{"QuotaName": name, "Value": value} for name, value in values.items()]
        cloud.answers("service-quotas", operation, {"Quotas": rows}, ServiceCode="sagemaker")
    found = asked(jobs.room, account(cloud))
    assert cloud.is_exhausted()
    return found


def test_each_machine_has_a_quota_of_its_own_by_the_way_it_is_bought() -> None:
    found = quotas({SPOT: 0, ON_DEMAND: 4}, {SPOT: 2})
    assert states(found) == [State.READY, State.READY]
    assert SPOT in found[0].said and ON_DEMAND in found[1].said


def test_a_quota_of_nothing_is_short_with_what_to_ask_for() -> None:
    short, _ = quotas({SPOT: 0, ON_DEMAND: 4}, {})
    assert short.state is State.SHORT
    assert "0 allowed, 2 wanted for a job on l4" in short.said and "Ask for 2" in short.fix


def test_a_quota_that_the_account_does_not_list_is_unknown() -> None:
    assert states(quotas({SPOT: 2}, {})) == [State.READY, State.UNKNOWN]


@pytest.mark.parametrize(("key", "state"), [(None, State.SHORT), ("arn:aws:kms:::key/1", State.READY)])
def test_a_log_group_of_former_jobs_stands_in_the_way(key: str | None, state: State) -> None:
    group = {"logGroupName": "/aws/sagemaker/TrainingJobs", **({"kmsKeyId": key} if key else {})}
    cloud = Cloud().answers("logs", "describe_log_groups", {"logGroups": [group]})
    (answer,) = asked(jobs.log_group, account(cloud))
    assert answer.state is state


def test_whoever_deploys_administers_no_cluster() -> None:
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    (answer,) = asked(identity.caller, account(cloud))
    assert answer.state is State.READY and "no cluster" in answer.said


def test_only_what_the_stack_makes_is_asked_for() -> None:
    actions = {action.partition(":")[0] for action in permissions.actions(account(Cloud()))}
    assert {"sagemaker", "lambda", "events", "budgets"} <= actions
    assert not actions & {"eks", "rds", "autoscaling", "secretsmanager", "fsx", "elasticfilesystem"}
    assert {"job-quotas", "job-logs"} <= set(JOB_CHECKS)
