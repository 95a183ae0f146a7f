"""The check of a customer's key for disks: nodes start only if EC2 Auto Scaling can use it.

Sources: Amazon EC2 Auto Scaling user guide, "Required AWS KMS key policy for use with encrypted volumes";
hashicorp/terraform-provider-aws issues 28644 (a new account has no such role) and 39904 (the late error).
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

CHECK: Final = "disk-key"
_ROLE: Final = "AWSServiceRoleForAutoScaling"
_OPERATIONS = (
    "CreateGrant Decrypt DescribeKey Encrypt GenerateDataKey GenerateDataKeyWithoutPlaintext "
    "ReEncryptFrom ReEncryptTo"
)


def usable(account: Account) -> Iterator[Answer]:
    """The key of `on.disk_key_arn` is enabled, symmetric, and usable by EC2 Auto Scaling."""
    arn = account.on.disk_key_arn
    if arn is None:
        return
    found = account.found("kms", "describe_key", "NotFoundException", KeyId=arn)
    if found is None:
        fix = "Correct on.disk_key_arn; `aws kms list-keys` lists the keys of the account."
        yield Answer(CHECK, State.SHORT, f"{arn} does not exist", fix)
        return
    key = found["KeyMetadata"]
    if key["KeyState"] != "Enabled" or key.get("KeySpec") != "SYMMETRIC_DEFAULT":
        text = f"{arn} is {key['KeyState']}, of the kind {key.get('KeySpec')}"
        yield Answer(CHECK, State.SHORT, text, "Name an enabled key of the kind SYMMETRIC_DEFAULT.")
        return
    if account.found("iam", "get_role", "NoSuchEntity", RoleName=_ROLE) is None:
        fix = "aws iam create-service-linked-role --aws-service-name autoscaling.amazonaws.com"
        yield Answer(CHECK, State.SHORT, f"the role {_ROLE}, which must use {arn}, does not exist", fix)
    elif _in_policy(account, arn) or _granted(account, arn):
        yield Answer(CHECK, State.READY, f"{arn} is enabled, and EC2 Auto Scaling can use it")
    else:
        owner = f"arn:{arn.split(':')[1]}:iam::{account.on.account_id}"
        role = f"{owner}:role/aws-service-role/autoscaling.amazonaws.com/{_ROLE}"
        fix = (
            f"aws kms create-grant --region {account.spec.region} --key-id {arn} --grantee-principal {role} "
            f"--operations {_OPERATIONS}"
        )
        yield Answer(CHECK, State.SHORT, f"neither the policy nor a grant of {arn} names {_ROLE}", fix)


def _in_policy(account: Account, arn: str) -> bool:
    """Return whether the key policy names the role, or everyone under conditions that are not judged here.

    Delegation to IAM is not enough. A role with a suffix is another one, which EKS does not use
    (aws/containers-roadmap issue 1087).
    """
    document = json.loads(account.client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"])
    statements: Any = document["Statement"]
    rows = statements if isinstance(statements, list) else [statements]
    return any(
        one["Effect"] == "Allow" and (name == "*" or name.endswith(f"/{_ROLE}"))
        for one in rows
        for name in _principals(one.get("Principal"))
    )


def _principals(named: Any) -> list[str]:
    listed = named.get("AWS", []) if isinstance(named, dict) else named
    return [listed] if isinstance(listed, str) else [*(listed or ())]


def _granted(account: Account, arn: str) -> bool:
    return any(
        grant.get("GranteePrincipal", "").endswith(f"/{_ROLE}") and "CreateGrant" in grant["Operations"]
        for grant in account.pages("kms", "list_grants", "Grants", KeyId=arn)
    )
