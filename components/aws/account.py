"""The AWS account of a component, which closes trust and key policies to other accounts."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws


@dataclass(frozen=True)
class AwsAccount:
    """The account behind the provider in use. `partition` is `aws`, `aws-cn` or `aws-us-gov`."""

    id: str
    partition: str

    def ebs_key_arn(self, region: str) -> str:
        """The alias of the key that AWS manages for EBS, by ARN.

        A disk without a key gets the default of the account, which can be a key that neither EC2 Auto Scaling
        nor the driver of volumes may use: nodes would not start, claims stay Pending (aws/aws-cdk#34491,
        runs-on/runs-on#152). EC2 takes the name of an alias as well, the provider of launch templates an ARN
        alone (hashicorp/terraform-provider-aws#38633).
        """
        return f"arn:{self.partition}:kms:{region}:{self.id}:alias/aws/ebs"


def current_account(parent: pulumi.Resource) -> pulumi.Output[AwsAccount]:
    """The account of the provider that children of `parent` use; asks STS once per call."""
    identity = aws.get_caller_identity_output(opts=pulumi.InvokeOutputOptions(parent=parent))
    return identity.apply(lambda caller: AwsAccount(id=caller.account_id, partition=caller.arn.split(":")[1]))
