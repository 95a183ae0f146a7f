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


def ebs_key_arn(parent: pulumi.Resource) -> pulumi.Output[str]:
    """The key that AWS manages for EBS, by ARN; the request creates it where the account has none yet.

    A disk without a key gets the default of the account, which can be a key that neither EC2 Auto Scaling nor
    the driver of volumes may use: nodes would not start, claims stay Pending (aws/aws-cdk#34491,
    runs-on/runs-on#152). The alias is no substitute: the driver compares the key of a class with that of the
    source of a clone as text (kubernetes-sigs/aws-ebs-csi-driver pkg/driver/controller.go).
    """
    found = aws.kms.get_key_output(key_id="alias/aws/ebs", opts=pulumi.InvokeOutputOptions(parent=parent))
    return found.arn
