"""The check of a customer's key for disks: nodes start only if the service that starts them can use it.

Sources: Amazon EC2 Auto Scaling user guide, "Required AWS KMS key policy for use with encrypted volumes"; AWS
PCS User Guide, "security-key-policy-for-encrypted-volumes"; hashicorp/terraform-provider-aws issues 28644 (a
new account has no such role) and 39904 (the late error).
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.aws.account import Account

CHECK: Final = "disk-key"
_STARTERS: Final = {
    False: ("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling", "EC2 Auto Scaling"),
    True: ("pcs.amazonaws.com", "AWSServiceRoleForPCS", "AWS PCS"),
}
"""Service, service-linked role and name of what starts nodes: with Slurm, AWS PCS."""
_ROOT: Final = re.compile(r"\*|\d{12}|arn:[^:]+:iam::\d{12}:root")
_USED: Final = ("kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext")
"""Actions of the user guide without which no encrypted disk is created or attached."""
_OPERATIONS = (
    "CreateGrant Decrypt DescribeKey Encrypt GenerateDataKey GenerateDataKeyWithoutPlaintext "
    "ReEncryptFrom ReEncryptTo"
)


def usable(account: Account) -> Iterator[Answer]:
    """The key of `on.disk_key_arn` is enabled, symmetric, and usable by what starts nodes."""
    arn = account.on.disk_key_arn
    if arn is None:
        return
    service, role, starter = _STARTERS[isinstance(account.layout, SlurmLayout)]
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
    if account.found("iam", "get_role", "NoSuchEntity", RoleName=role) is None:
        fix = f"aws iam create-service-linked-role --aws-service-name {service}"
        yield Answer(CHECK, State.SHORT, f"the role {role}, which must use {arn}, does not exist", fix)
        return
    statements = _allowed(account, arn)
    by_driver = not isinstance(account.layout, SlurmLayout)
    if by_driver and not any(_ROOT.fullmatch(name) for name, _ in statements):
        text = f"the key policy of {arn} does not delegate to IAM: the driver of EBS attaches no volume"
        fix = (
            "Allow the actions of the guide of the account to `arn:aws:iam::ACCOUNT:root` in the key policy."
        )
        yield Answer(CHECK, State.SHORT, text, fix)
    elif _in_policy(statements, role) or _granted(account, arn, role):
        users = f"{starter} and IAM" if by_driver else starter
        yield Answer(CHECK, State.READY, f"{arn} is enabled; {users} can use it")
    else:
        owner = f"arn:{arn.split(':')[1]}:iam::{account.on.account_id}"
        grantee = f"{owner}:role/aws-service-role/{service}/{role}"
        fix = (
            f"aws kms create-grant --region {account.spec.region} --key-id {arn} "
            f"--grantee-principal {grantee} --operations {_OPERATIONS}"
        )
        yield Answer(CHECK, State.SHORT, f"neither the policy nor a grant of {arn} names {role}", fix)


def _allowed(account: Account, arn: str) -> list[tuple[str, list[str]]]:
    """Principals with the actions that the key policy allows them; conditions are not judged here."""
    document = json.loads(account.client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"])
    return [
        (name, _listed(one.get("Action")))
        for one in _listed(document["Statement"])
        if one["Effect"] == "Allow"
        for name in _principals(one.get("Principal"))
    ]


def _in_policy(statements: list[tuple[str, list[str]]], role: str) -> bool:
    """Return whether the key policy lets the role, or everyone, use the key and create grants.

    Delegation to IAM is not enough. A role with a suffix is another one, which EKS does not use
    (aws/containers-roadmap issue 1087).
    """
    patterns = [
        pattern
        for name, actions in statements
        if name == "*" or name.endswith(f"/{role}")
        for pattern in actions
    ]
    return all(any(fnmatchcase(used, one) for one in patterns) for used in _USED)


def _principals(named: Any) -> list[str]:
    listed = named.get("AWS", []) if isinstance(named, dict) else named
    return _listed(listed)


def _listed(found: Any) -> list[Any]:
    return [found] if isinstance(found, str | dict) else [*(found or ())]


def _granted(account: Account, arn: str, role: str) -> bool:
    return any(
        grant.get("GranteePrincipal", "").endswith(f"/{role}")
        and {one.removeprefix("kms:") for one in _USED} <= {*grant["Operations"]}
        for grant in account.pages("kms", "list_grants", "Grants", KeyId=arn)
    )
