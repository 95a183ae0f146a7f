"""Permissions of the deployer, by IAM's simulation."""

import datetime
import fnmatch
import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from infra.catalog.aws import facts
from tests.stacks.iam import judge
from tests.stacks.stack_files import LOAD_BALANCER
from tests.trainstack.preflight.aws.asking import ACCOUNT, ME, Answering, Cloud, account, asked
from trainstack.preflight.answers import State
from trainstack.preflight.aws import permissions

_session: Any = importlib.import_module("botocore.session")
# Actions that are not called as the operation is. Source: Service Authorization Reference, read 2026-11-23.
NAMES = {
    "iam:PassRole": None,
    # Of deliveries of logs, without an operation.
    "pcs:AllowVendedLogDeliveryForResource": None,
    "s3:PutBucketPublicAccessBlock": "PutPublicAccessBlock",
    "s3:PutEncryptionConfiguration": "PutBucketEncryption",
    "s3:PutLifecycleConfiguration": "PutBucketLifecycleConfiguration",
    "budgets:ModifyBudget": "UpdateBudget",
    "lambda:InvokeFunction": "Invoke",
    "budgets:ViewBudget": "DescribeBudget",
    "s3:GetAccelerateConfiguration": "GetBucketAccelerateConfiguration",
    "s3:GetBucketCORS": "GetBucketCors",
    "s3:GetBucketObjectLockConfiguration": "GetObjectLockConfiguration",
    "s3:GetBucketPublicAccessBlock": "GetPublicAccessBlock",
    "s3:GetEncryptionConfiguration": "GetBucketEncryption",
    "s3:GetLifecycleConfiguration": "GetBucketLifecycleConfiguration",
    "s3:GetReplicationConfiguration": "GetBucketReplication",
    "s3:DeleteObjectVersion": "DeleteObject",
    "s3:ListBucket": "ListObjectsV2",
    "s3:ListBucketVersions": "ListObjectVersions",
}
SERVICES = {
    "elasticfilesystem": ("efs",),
    "elasticloadbalancing": ("elbv2",),
    "cloudformation": ("cloudformation", "cloudcontrol"),  # whose operations have its prefix
}
LINKED = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/"


Decide = Callable[[str, str], dict[str, Any]]


def simulated(denied: dict[str, dict[str, Any]], **changes: Any) -> list[Any]:
    """The answers where these actions are denied, with what IAM says of each."""
    return decided(lambda action, _: denied.get(action, {}), **changes)


def limited(allowed: Mapping[str, str], **changes: Any) -> list[Any]:
    """The answers to a deployer whose policy allows the actions of some services on such resources alone."""

    def decide(action: str, resource: str) -> dict[str, Any]:
        pattern = allowed.get(action.partition(":")[0], "*")
        if resource == "*" and judge.details(action)["accessLevel"] in ("List", "Read"):
            return {}  # as policies for names must allow reads that a service has no names for
        return {} if fnmatch.fnmatch(resource, pattern) else {"EvalDecision": "implicitDeny"}

    return decided(decide, **changes)


def context(stack: str, resource: str, service: str) -> list[dict[str, Any]]:
    """Keys of a simulated request: tags of the stack and of its cluster, and the service that gets a role."""
    keys = {
        "aws:ResourceTag/trainstack:stack": stack,
        f"aws:ResourceTag/k8s.io/cluster-autoscaler/{stack}": "owned",
    }
    if service:
        keys["iam:PassedToService"] = service
    elif resource.startswith(LINKED):
        keys["iam:AWSServiceName"] = resource.removeprefix(LINKED).partition("/")[0]
    return [
        {"ContextKeyName": key, "ContextKeyType": "string", "ContextKeyValues": [value]}
        for key, value in keys.items()
    ]


def role(arn: str) -> dict[str, Any]:
    """A role as IAM describes it."""
    path = arn.partition(":role")[2]
    named = {"RoleName": path.rpartition("/")[2], "Path": path[: path.rindex("/") + 1], "Arn": arn}
    return {**named, "RoleId": "AROA" + "0" * 17, "CreateDate": datetime.datetime(2026, 1, 1)}


def decided(decide: Decide, existing: tuple[str, ...] = (), **changes: Any) -> list[Any]:
    """The answers where IAM says so of each action and resource, other than that it is allowed."""
    cloud = Cloud().answers("sts", "get_caller_identity", {"Account": ACCOUNT, "Arn": ME, "UserId": "x"})
    deployer = account(cloud, **changes)
    for resource, wanted, service in permissions.requests(deployer.spec):
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
                ContextEntries=context(deployer.spec.name, resource, service),
            )
            if any(row["EvalDecision"] != "allowed" for row in rows) and resource.startswith(LINKED):
                name = resource.rpartition("/")[2]
                if name in existing:
                    cloud.answers("iam", "get_role", {"Role": role(resource)}, RoleName=name)
                else:
                    cloud.refuses("iam", "get_role", "NoSuchEntity")
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
    bucket, objects = limited({"s3": "arn:aws:s3:::prod-*"})
    assert [bucket.state, objects.state] == [State.SHORT, State.SHORT]
    assert " arn:aws:s3:::dev-aws-storage-checkpoints-0000000: s3:CreateBucket, " in bucket.text
    assert objects.text.endswith(": s3:DeleteObject, s3:DeleteObjectVersion")


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
    without = permissions.actions(account(Cloud(), data__shared_fs=None, data__homes=False).spec)
    absent = ("ce:", "fsx:", "elasticfilesystem:", "elasticloadbalancing:", "secretsmanager:GetSecretValue")
    assert not [name for name in without if name.startswith((*absent, "cloudwatch:"))]
    # Lustre has an alarm, and so have checkpoints of a size that is known.
    assert "cloudwatch:PutMetricAlarm" in permissions.actions(account(Cloud()).spec)
    sized = account(Cloud(), data__shared_fs=None, data__checkpoints__model_params_b=70)
    assert "cloudwatch:PutMetricAlarm" in permissions.actions(sized.spec)
    behind = permissions.actions(account(Cloud(), on__load_balancer=LOAD_BALANCER).spec)
    assert {"elasticloadbalancing:CreateListener", "autoscaling:AttachLoadBalancerTargetGroups"} <= {*behind}
    assert "ce:CreateAnomalyMonitor" in permissions.actions(account(Cloud(), budget__anomaly_usd=100).spec)


def test_actions_are_operations_of_their_services() -> None:
    session = _session.get_session()
    for action in sorted({one for row in facts.permissions.values() for one in row.actions}):
        service, _, name = action.partition(":")
        assert re.fullmatch(r"[a-z0-9]+", service), action
        operation = NAMES.get(action, name)
        if operation:
            models = [session.get_service_model(one) for one in SERVICES.get(service, (service,))]
            assert any(operation in model.operation_names for model in models), action


SSO = "aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Deploy_0123456789abcdef"


@pytest.mark.parametrize("path", [SSO, "ci/deployer", "deployer"])
def test_a_session_is_simulated_as_its_role_with_its_path(path: str) -> None:
    name, arn = path.rpartition("/")[2], f"arn:aws:iam::{ACCOUNT}:role/{path}"
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/anna@example.com"
    assert simulated_for(session, Answering(get_role={"Role": role(arn)})) == {arn}


def test_a_user_is_simulated_as_such_and_a_root_user_is_not() -> None:
    user = f"arn:aws:iam::{ACCOUNT}:user/people/anna"
    assert simulated_for(user, Answering()) == {user}
    root = Answering(get_caller_identity=caller(f"arn:aws:iam::{ACCOUNT}:root"))
    (answer,) = asked(permissions.deploying, account(root, on__admin_arns=[user]))
    assert answer.state is State.UNKNOWN


def simulated_for(arn: str, cloud: Answering) -> set[str]:
    """The ARNs with which IAM is asked for a caller."""
    cloud.answers |= {
        "get_caller_identity": caller(arn),
        "simulate_principal_policy": {"EvaluationResults": []},
    }
    asked(permissions.deploying, account(cloud))
    return {params["PolicySourceArn"] for name, params in cloud.asked if name == "simulate_principal_policy"}


def caller(arn: str) -> dict[str, Any]:
    return {"Account": ACCOUNT, "Arn": arn, "UserId": "x"}


def test_a_service_linked_role_is_asked_for_with_its_service_unless_it_exists() -> None:
    denied = {"iam:CreateServiceLinkedRole": {"EvalDecision": "implicitDeny"}}
    names = {
        arn.rpartition("/")[2]
        for arn in permissions.simulated(account(Cloud()).spec)
        if arn.startswith(LINKED)
    }
    assert names >= {
        "AWSServiceRoleForAmazonEKS",
        "AWSServiceRoleForAmazonEKSNodegroup",
        "AWSServiceRoleForRDS",
    }
    assert "AWSServiceRoleForAmazonSageMakerNotebooks" not in names
    decide = lambda action, _: denied.get(action, {})  # noqa: E731
    missing = decided(decide, existing=tuple(names - {"AWSServiceRoleForRDS"}))
    assert [answer.state for answer in missing] == [State.SHORT]
    assert "rds.amazonaws.com/AWSServiceRoleForRDS" in missing[0].text
    (ready,) = decided(decide, existing=tuple(names))
    assert ready.state is State.READY


def test_the_data_of_aws_knows_every_action_and_the_resource_that_it_is_asked_with() -> None:
    fields = {"stack": "dev", "region": "us-east-1", "account": ACCOUNT}
    taken = {action for row in facts.permissions.values() for action in row.actions}
    assert {action for action in taken if not judge.expanded(action)} == set()
    rows = [
        (one, row.arn.format(**fields)) for row in facts.simulated_resources.values() for one in row.actions
    ]
    assert [row for row in rows if not judge.fits(*row)] == []
    needed = {other for action in taken for other in depends(action)}
    assert needed <= taken, needed - taken


def depends(action: str) -> set[str]:
    """Other actions that a service performs with the rights of the caller."""
    row = judge.details(action)
    found = [
        *row["dependentActions"],
        *(one for kind in row["resourceTypes"] for one in kind["dependentActions"]),
    ]
    return set(found)


def test_every_type_is_read_too() -> None:
    # An invocation and what is read with its parent have no read of their own.
    without = {"aws:lambda/invocation:Invocation"}
    for token, row in facts.permissions.items():
        levels = {judge.details(action)["accessLevel"] for action in row.actions}
        assert levels & {"List", "Read", "List, Read"} or token in without, token


@pytest.mark.parametrize(
    ("token", "needed"),
    [
        ("aws:eks/nodeGroup:NodeGroup", {"eks:UpdateNodegroupVersion", "eks:DescribeUpdate"}),
        ("aws:eks/cluster:Cluster", {"eks:UpdateClusterVersion"}),
        ("aws:iam/role:Role", {"iam:UpdateAssumeRolePolicy", "iam:ListInstanceProfilesForRole"}),
        ("aws:sagemaker/domain:Domain", {"iam:CreateServiceLinkedRole", "sagemaker:DescribeDomain"}),
        ("trainstack:JobGate", {"sagemaker:CreateTrainingJob", "iam:PassRole", "s3:PutObject"}),
    ],
)
def test_updates_and_the_validation_are_asked_for(token: str, needed: set[str]) -> None:
    assert needed <= set(facts.permissions[token].actions)
