"""A customer-managed KMS key for one purpose: rotated, named by an alias, with a policy of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import Account
from components.base import Component

# What a key allows besides IAM, once it is known which account it lives in.
KeyStatements: TypeAlias = Callable[[Account], Sequence[Mapping[str, object]]]

# KMS waits this long before a key is gone for good, and everything encrypted with it; 30 is the longest.
DELETION_WINDOW_DAYS = 30


def encryption_key(
    component: Component,
    name: str,
    *,
    account: pulumi.Output[Account],
    purpose: str,
    statements: KeyStatements | None = None,
) -> aws.kms.Key:
    """A key called `alias/<name>`: the account administers it through IAM, services as `statements` says."""

    def policy(owner: Account) -> str:
        root_arn = f"arn:{owner.partition}:iam::{owner.id}:root"
        return iam.document(iam.owned_by(root_arn), *(statements(owner) if statements else ()))

    key = aws.kms.Key(
        name,
        description=purpose,
        enable_key_rotation=True,
        deletion_window_in_days=DELETION_WINDOW_DAYS,
        policy=account.apply(policy),
        opts=component.child(),
    )
    aws.kms.Alias(f"{name}-alias", name=f"alias/{name}", target_key_id=key.key_id, opts=component.child())
    return key
