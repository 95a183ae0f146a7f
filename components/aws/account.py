"""The AWS account of a component, which closes trust and key policies to other accounts."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws


@dataclass(frozen=True)
class AwsAccount:
    """The account behind the provider in use. `partition` is `aws`, `aws-cn` or `aws-us-gov`."""

    id: str
    partition: str


def current_account(parent: pulumi.Resource) -> pulumi.Output[AwsAccount]:
    """The account of the provider that children of `parent` use; asks STS once per call."""
    identity = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(parent=parent))
    return identity.apply(lambda caller: AwsAccount(id=caller.account_id, partition=caller.arn.split(":")[1]))
