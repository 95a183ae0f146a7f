"""Flow logs of a VPC, encrypted, with the stack's retention."""

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import current_account
from components.aws.encryption import encryption_key
from components.aws.logs import log_group, logs_may_use
from components.base import Component

AGGREGATION_SECONDS = 600  # the other choice, 60, writes and bills up to ten times the records


def flow_logs(
    component: Component,
    name: str,
    *,
    region: str,
    vpc_id: pulumi.Input[str],
    retention_days: int,
    key_arn: pulumi.Input[str] | None,
) -> aws.ec2.FlowLog:
    """Log accepted and rejected traffic of the whole VPC; creates a key of its own when `key_arn` is None.

    The passed key must be usable by CloudWatch Logs of the region.
    """
    account = current_account(component)
    group_name = f"/trainstack/{name}"
    if key_arn is None:
        key_arn = encryption_key(
            component,
            f"{name}-key",
            account=account,
            purpose=f"Flow logs of {name}",
            statements=logs_may_use(region, group_name),
        ).arn
    group = log_group(
        component, f"{name}-group", log_group_name=group_name, retention_days=retention_days, key_arn=key_arn
    )
    trusted = account.apply(
        lambda owner: iam.trust(
            "vpc-flow-logs.amazonaws.com",
            conditions=iam.from_account(
                owner.id, f"arn:{owner.partition}:ec2:{region}:{owner.id}:vpc-flow-log/*"
            ),
        )
    )
    role = iam.role(
        component, f"{name}-role", trusted, description="Lets VPC flow logs write to their log group"
    )
    policy = aws.iam.RolePolicy(
        f"{name}-policy", role=role.id, policy=group.arn.apply(_write_to), opts=component.child()
    )
    return aws.ec2.FlowLog(
        name,
        vpc_id=vpc_id,
        traffic_type="ALL",
        log_destination_type="cloud-watch-logs",
        log_destination=group.arn,
        iam_role_arn=role.arn,
        max_aggregation_interval=AGGREGATION_SECONDS,
        tags={"Name": name},
        opts=component.child(pulumi.ResourceOptions(depends_on=[policy])),
    )


def _write_to(group_arn: str) -> str:
    # No CreateLogGroup: after a destroy the service must not create the group again, unencrypted.
    return iam.document(
        iam.allow(
            ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
            [group_arn, f"{group_arn}:*"],
        ),
        iam.allow(["logs:DescribeLogGroups"], ["*"]),  # lists only; it cannot be limited to one group
    )
