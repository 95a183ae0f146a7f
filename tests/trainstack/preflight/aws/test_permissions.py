"""Permissions of the deployer, by IAM's simulation."""

import fnmatch
import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from infra.catalog.aws import facts
from tests.stacks.stack_files import LOAD_BALANCER
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws import permissions

_session: Any = importlib.import_module("botocore.session")
# Actions that are not called as the operation is. Source: Service Authorization Reference, read 2026-11-23.
NAMES = {
    "iam:PassRole": None,
    "s3:PutBucketPublicAccessBlock": "PutPublicAccessBlock",
    "s3:PutEncryptionConfiguration": "PutBucketEncryption",
    "s3:PutLifecycleConfiguration": "PutBucketLifecycleConfiguration",
    "budgets:ModifyBudget": "UpdateBudget",
    "lambda:InvokeFunction": "Invoke",
}
SERVICES = {"elasticfilesystem": "efs", "elasticloadbalancing": "elbv2"}


Decide = Callable[[str, str], dict[str, Any]]


def simulated(denied: dict[str, dict[str, Any]], **changes: Any) -> list[Any]:
    """The answers where these actions are denied, with what IAM says of each."""
    return decided(lambda action, _: denied.get(action, {}), **changes)


def limited(allowed: Mapping[str, str], **changes: Any) -> list[Any]:
    """The answers to a deployer whose policy allows the actions of some services on such resources alone."""

    def decide(action: str, resource: str) -> dict[str, Any]:
        pattern = allowed.get(action.partition(":")[0], "*")
        return {} if fnmatch.fnmatch(resource, pattern) else {"EvalDecision": "implicitDeny"}

    return decided(decide, **changes)


def decided(decide: Decide, **changes: Any) -> list[Any]:
    """The answers where IAM says so of each action and resource, other than that it is allowed."""
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    deployer = account(cloud, **changes)
    for resource, wanted in permissions.simulated(deployer).items():
        for start in range(0, len(wanted), 50):
            names = wanted[start : start + 50]
            rows = [
                {"EvalActionName": name, "EvalDecision": "allowed", **decide(name, resource)}
                for name in names
            ]
            cloud.answers(
                "iam",
                "simulate_principal_policy",
                {"EvaluationResults": rows},
                PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:role/platform",
                ActionNames=names,
                ResourceArns=[resource],
            )
    found = asked(permissions.deploying, deployer)
    assert cloud.is_exhausted()
    return found


def test_a_deployer_that_may_do_everything() -> None:
    (answer,) = simulated({})
    assert answer.state is State.READY


def test_denied_actions_have_a_reason() -> None:
    found = simulated(
        {
            "eks:CreateCluster": {"EvalDecision": "implicitDeny"},
            "fsx:CreateFileSystem": {"EvalDecision": "explicitDeny"},
            "kms:CreateKey": {
                "EvalDecision": "implicitDeny",
                "OrganizationsDecisionDetail": {"AllowedByOrganizations": False},
            },
        }
    )
    said = {answer.text: answer.state for answer in found}
    assert set(said.values()) == {State.SHORT}
    actions = {text.rpartition(": ")[2] for text in said}
    assert actions == {"eks:CreateCluster", "fsx:CreateFileSystem", "kms:CreateKey"}
    assert any(f"arn:aws:fsx:us-east-1:{ACCOUNT}:file-system/fs-{'0' * 17}:" in text for text in said)


def test_a_policy_that_is_limited_to_names_of_the_stack_is_enough() -> None:
    (answer,) = limited(
        {
            "s3": "arn:aws:s3:::dev-aws-*",
            "rds": f"arn:aws:rds:us-east-1:{ACCOUNT}:*:dev-aws-tracking-*",
            "secretsmanager": f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:dev-aws-*",
            "logs": f"arn:aws:logs:*:{ACCOUNT}:log-group:/aws/eks/dev-aws/cluster*",
            "fsx": f"arn:aws:fsx:us-east-1:{ACCOUNT}:*",
        }
    )
    assert answer.state is State.READY


def test_a_policy_that_is_limited_to_other_names_is_reported_with_the_resource() -> None:
    (answer,) = limited({"s3": "arn:aws:s3:::prod-*"})
    assert answer.state is State.SHORT
    assert " arn:aws:s3:::dev-aws-storage-checkpoints-0000000: s3:CreateBucket, " in answer.text


def test_only_actions_that_are_taken_are_simulated_with_a_resource() -> None:
    taken = {action for row in facts.permissions.values() for action in row.actions}
    rows = facts.simulated_resources
    assert {action for row in rows.values() for action in row.actions} <= taken
    assert {row.type for row in rows.values()} <= set(facts.permissions)


def test_a_permission_under_a_condition_is_unknown() -> None:
    reason = {"EvalDecision": "implicitDeny", "MissingContextValues": ["iam:PassedToService"]}
    (answer,) = simulated({"iam:PassRole": reason})
    assert answer.state is State.UNKNOWN and "iam:PassRole" in answer.text


def test_a_deployer_without_the_simulation_gets_the_action_to_allow() -> None:
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    cloud.refuses("iam", "simulate_principal_policy", "AccessDenied", "not authorized")
    (answer,) = asked(permissions.deploying, account(cloud))
    assert answer.state is State.UNKNOWN and "SimulatePrincipalPolicy" in answer.fix


def test_nothing_is_asked_for_parts_that_the_stack_does_not_have() -> None:
    without = permissions.actions(account(Cloud(), data__shared_fs=None, data__homes=False))
    absent = ("ce:", "fsx:", "elasticfilesystem:", "elasticloadbalancing:", "secretsmanager:GetSecretValue")
    assert not [name for name in without if name.startswith((*absent, "cloudwatch:"))]
    # Lustre has an alarm, and so have checkpoints of a size that is known.
    assert "cloudwatch:PutMetricAlarm" in permissions.actions(account(Cloud()))
    sized = account(Cloud(), data__shared_fs=None, data__checkpoints__model_params_b=70)
    assert "cloudwatch:PutMetricAlarm" in permissions.actions(sized)
    behind = permissions.actions(account(Cloud(), on__load_balancer=LOAD_BALANCER))
    assert {"elasticloadbalancing:CreateListener", "autoscaling:AttachLoadBalancerTargetGroups"} <= {*behind}
    assert "ce:CreateAnomalyMonitor" in permissions.actions(account(Cloud(), budget__anomaly_usd=100))


def test_actions_are_operations_of_their_services() -> None:
    session = _session.get_session()
    for action in sorted({one for row in facts.permissions.values() for one in row.actions}):
        service, _, name = action.partition(":")
        assert re.fullmatch(r"[a-z0-9]+", service), action
        operation = NAMES.get(action, name)
        if operation:
            model = session.get_service_model(SERVICES.get(service, service))
            assert operation in model.operation_names, action
