"""A log group under a customer-managed key, created before anything writes to it."""

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import AwsAccount
from components.aws.encryption import KeyStatements
from components.base import Component


def logs_may_use(region: str, log_group_name: str) -> KeyStatements:
    """The key statement with which CloudWatch Logs can encrypt this one group."""

    def statements(owner: AwsAccount) -> list[dict[str, object]]:
        group_arn = f"arn:{owner.partition}:logs:{region}:{owner.id}:log-group:{log_group_name}"
        return [iam.usable_by_logs(region, group_arn)]

    return statements


def log_group(
    component: Component, name: str, *, log_group_name: str, retention_days: int, key_arn: pulumi.Input[str]
) -> aws.cloudwatch.LogGroup:
    """The group itself. A service without a group creates one: unencrypted, without retention."""
    return aws.cloudwatch.LogGroup(
        name,
        name=log_group_name,
        retention_in_days=retention_days,
        kms_key_id=key_arn,
        opts=component.child(),
    )
