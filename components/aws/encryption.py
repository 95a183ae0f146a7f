"""A customer-managed KMS key for one purpose: rotated, named by an alias, with a policy of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount
from components.base import Component

# Further statements of a key policy, from its account.
KeyStatements: TypeAlias = Callable[[AwsAccount], Sequence[Mapping[str, object]]]

# KMS deletes a key, and everything encrypted with it becomes unreadable, after this time; 30 is the longest.
DELETION_WINDOW_DAYS = 30


def encryption_key(
    component: Component,
    name: str,
    *,
    account: pulumi.Output[AwsAccount],
    purpose: str,
    statements: KeyStatements | None = None,
    tags: Mapping[str, str] | None = None,
    retain: bool = False,
) -> aws.kms.Key:
    """A key named `alias/<name>`: the account administers it through IAM, services through `statements`.

    With `retain` it outlives its stack.
    """

    def policy(owner: AwsAccount) -> str:
        root_arn = f"arn:{owner.partition}:iam::{owner.id}:root"
        return iam.document(iam.owned_by(root_arn), *(statements(owner) if statements else ()))

    key = aws.kms.Key(
        name,
        description=purpose,
        enable_key_rotation=True,
        deletion_window_in_days=DELETION_WINDOW_DAYS,
        policy=account.apply(policy),
        tags=tags,
        opts=component.child(pulumi.ResourceOptions(retain_on_delete=True) if retain else None),
    )
    aws.kms.Alias(f"{name}-alias", name=f"alias/{name}", target_key_id=key.key_id, opts=component.child())
    return key
