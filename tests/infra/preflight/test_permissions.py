"""What the deployer may do, as IAM evaluates it."""

import importlib
import re
from typing import Any

from infra.catalog.aws import facts
from infra.preflight.answers import State
from infra.preflight.aws import permissions
from tests.infra.preflight.asking import ACCOUNT, ME, Cloud, account, asked
from tests.stacks.stack_files import LOAD_BALANCER

_session: Any = importlib.import_module("botocore.session")
# Actions that are not called as the operation is. Source: Service Authorization Reference, read 2026-11-23.
NAMES = {
    "iam:PassRole": None,
    "s3:PutBucketPublicAccessBlock": "PutPublicAccessBlock",
    "s3:PutEncryptionConfiguration": "PutBucketEncryption",
    "s3:PutLifecycleConfiguration": "PutBucketLifecycleConfiguration",
    "budgets:ModifyBudget": "UpdateBudget",
}
SERVICES = {"elasticfilesystem": "efs", "elasticloadbalancing": "elbv2"}


def simulated(denied: dict[str, dict[str, Any]], **changes: Any) -> list[Any]:
    """The answers where these actions are denied, with what IAM says of each."""
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    deployer = account(cloud, **changes)
    wanted = permissions.actions(deployer)
    for start in range(0, len(wanted), 50):
        names = wanted[start : start + 50]
        rows = [{"EvalActionName": name, "EvalDecision": "allowed", **denied.get(name, {})} for name in names]
        cloud.answers(
            "iam",
            "simulate_principal_policy",
            {"EvaluationResults": rows},
            PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:role/platform",
            ActionNames=names,
        )
    found = asked(permissions.deploying, deployer)
    assert cloud.is_exhausted()
    return found


def test_a_deployer_that_may_do_everything() -> None:
    (answer,) = simulated({})
    assert answer.state is State.READY


def test_what_is_denied_is_told_with_the_reason() -> None:
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
    said = {answer.said: answer.state for answer in found}
    assert set(said.values()) == {State.SHORT}
    assert set(said) == {
        "no policy allows: eks:CreateCluster",
        "a policy denies: fsx:CreateFileSystem",
        "a policy of the organization does not allow: kms:CreateKey",
    }


def test_a_permission_under_a_condition_is_unknown() -> None:
    reason = {"EvalDecision": "implicitDeny", "MissingContextValues": ["iam:PassedToService"]}
    (answer,) = simulated({"iam:PassRole": reason})
    assert answer.state is State.UNKNOWN and "iam:PassRole" in answer.said


def test_a_deployer_that_may_not_ask_is_told_what_to_allow() -> None:
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    cloud.refuses("iam", "simulate_principal_policy", "AccessDenied", "not authorized")
    (answer,) = asked(permissions.deploying, account(cloud))
    assert answer.state is State.UNKNOWN and "SimulatePrincipalPolicy" in answer.fix


def test_nothing_is_asked_for_parts_that_the_stack_does_not_have() -> None:
    without = permissions.actions(account(Cloud(), data__shared_fs=None, data__homes=False))
    absent = ("ce:", "fsx:", "elasticfilesystem:", "elasticloadbalancing:", "secretsmanager:GetSecretValue")
    assert not [name for name in without if name.startswith(absent)]
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
