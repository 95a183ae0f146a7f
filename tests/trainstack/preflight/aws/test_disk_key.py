"""Checks of a customer's key for disks: enabled, and usable by EC2 Auto Scaling."""

import json
from typing import Any

import pytest

from tests.trainstack.preflight.aws.asking import ACCOUNT, Cloud, account, asked
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws import disk_key
from trainstack.preflight.aws.deployment import preflight_of

ARN = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/22222222-3333-4444-5555-666666666666"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
DELEGATES = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*"}
USED = ["kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKey*"]
NAMES = {"Effect": "Allow", "Principal": {"AWS": [ROLE]}, "Action": USED}
DENIES = {**NAMES, "Effect": "Deny"}
GRANT = {
    "GranteePrincipal": ROLE,
    "Operations": ["Decrypt", "CreateGrant", "GenerateDataKeyWithoutPlaintext"],
}


def with_key(cloud: Cloud, **changes: Any) -> Cloud:
    key = {"KeyId": ARN, "KeyState": "Enabled", "KeySpec": "SYMMETRIC_DEFAULT", **changes}
    return cloud.answers("kms", "describe_key", {"KeyMetadata": key}, KeyId=ARN)


def answer(cloud: Cloud) -> Answer:
    (found,) = asked(disk_key.usable, account(cloud, on__disk_key_arn=ARN))
    return found


def with_policy(statements: Any, grants: list[dict[str, Any]]) -> Answer:
    cloud = with_key(Cloud())
    role = {
        "Path": "/", "RoleName": "AWSServiceRoleForAutoScaling", "RoleId": "A" * 16, "Arn": ROLE,
        "CreateDate": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    cloud.answers("iam", "get_role", {"Role": role}, RoleName="AWSServiceRoleForAutoScaling")
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements})
    cloud.answers("kms", "get_key_policy", {"Policy": policy}, KeyId=ARN, PolicyName="default")
    cloud.answers("kms", "list_grants", {"Grants": grants, "Truncated": False}, KeyId=ARN)
    return answer(cloud)


@pytest.mark.parametrize(
    ("statements", "grants", "state"),
    [
        ([DELEGATES, NAMES], [], State.READY),
        ({**NAMES, "Principal": "*"}, [], State.READY),
        ([{**NAMES, "Principal": {"AWS": "*"}}], [], State.READY),
        # The guide has two statements.
        ([DELEGATES, *({**NAMES, "Action": one} for one in USED)], [], State.READY),
        ([DELEGATES, {**NAMES, "Action": "kms:DescribeKey"}], [], State.SHORT),
        ([DELEGATES, {**NAMES, "Action": "kms:CreateGrant"}], [], State.SHORT),
        ([DELEGATES, {**NAMES, "Principal": {"AWS": f"{ROLE}_ml"}}], [], State.SHORT),
        ([DELEGATES, {**NAMES, "Principal": {"Service": "ec2.amazonaws.com"}}], [], State.SHORT),
        ([DELEGATES], [{**GRANT, "GranteePrincipal": f"{ROLE}_ml"}], State.SHORT),
        ([DELEGATES], [GRANT], State.READY),
        ([DELEGATES], [], State.SHORT),
        ([DELEGATES, DENIES], [], State.SHORT),
        ([DELEGATES], [{**GRANT, "Operations": ["Decrypt"]}], State.SHORT),
        ([DELEGATES], [{**GRANT, "GranteePrincipal": f"arn:aws:iam::{ACCOUNT}:role/x"}], State.SHORT),
    ],
)
def test_a_key_is_usable_by_its_policy_or_a_grant(
    statements: Any, grants: list[dict[str, Any]], state: State
) -> None:
    found = with_policy(statements, grants)
    assert found.state is state
    assert (f"aws kms create-grant --region us-east-1 --key-id {ARN}" in found.fix) is (state is State.SHORT)


def test_a_key_that_does_not_delegate_to_iam_attaches_no_volume() -> None:
    found = with_policy([NAMES], [GRANT])
    assert found.state is State.SHORT and "create-grant" not in found.fix


@pytest.mark.parametrize("changes", [{"KeyState": "PendingDeletion"}, {"KeySpec": "RSA_2048"}])
def test_a_key_that_encrypts_no_disk_is_short(changes: dict[str, str]) -> None:
    assert answer(with_key(Cloud(), **changes)).state is State.SHORT


def test_a_key_that_does_not_exist_is_short() -> None:
    assert answer(Cloud().refuses("kms", "describe_key", "NotFoundException")).state is State.SHORT


def test_a_new_account_gets_the_role_of_auto_scaling_first() -> None:
    cloud = with_key(Cloud()).refuses("iam", "get_role", "NoSuchEntity")
    found = answer(cloud)
    assert found.state is State.SHORT and "create-service-linked-role" in found.fix


def test_a_key_that_may_not_be_read_is_unknown() -> None:
    assert answer(Cloud().refuses("kms", "describe_key", "AccessDeniedException")).state is State.UNKNOWN


def test_without_a_key_nothing_is_asked_and_up_asks_itself() -> None:
    asking = account(Cloud())
    assert [*asked(disk_key.usable, asking)] == []
    assert disk_key.CHECK in preflight_of(asking.spec).before_up
