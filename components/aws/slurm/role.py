"""The identity of all nodes: joining the cluster, Systems Manager, home folders, code and results."""

from typing import TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.account import current_account
from components.base import Component, Options
from components.ordering import after
from infra.catalog.aws.pcs import REGISTER
from infra.naming import sanitize

# Adds a dash and seven characters, and IAM takes 64.
_MOST_LETTERS = 56


class NodeRights(TypedDict):
    """Data that nodes read and write as root."""

    code_bucket_arn: pulumi.Input[str]
    """Bucket with code of validations, below `code`."""
    code: str
    """Folder that nodes read, such as `slurm/code`."""
    results_bucket_arn: pulumi.Input[str]
    """Bucket of results."""
    results: str
    """Folder that nodes write, such as `smoke`."""
    kms_key_arn: pulumi.Input[str]
    """Key of both buckets."""


class AwsSlurmRole(Component):
    """A role with the path `/aws-pcs/`, without which the service refuses it, in an instance profile."""

    role_name: pulumi.Output[str]
    """Name of the role."""
    profile_arn: pulumi.Output[str]
    """ARN of the instance profile; depends on the right to join the cluster."""

    def __init__(self, name: str, opts: Options = None) -> None:
        super().__init__(name, opts)
        self._prefix = name
        role = aws.iam.Role(
            sanitize(f"{name}-role", max_length=_MOST_LETTERS),
            path="/aws-pcs/",
            assume_role_policy=iam.trust("ec2.amazonaws.com"),
            opts=self.child(),
        )
        partition = current_account(self).apply(lambda owner: owner.partition)
        rights = [
            aws.iam.RolePolicyAttachment(
                f"{name}-systems-manager",
                role=role.name,
                policy_arn=iam.managed_policy_arn(partition, "AmazonSSMManagedInstanceCore"),
                opts=self.child(),
            ),
            aws.iam.RolePolicy(
                f"{name}-joining",
                role=role.name,
                # The action has no resource types (Service Authorization Reference, AWS Parallel Computing
                # Service).
                policy=iam.document(iam.allow([REGISTER], ["*"])),
                opts=self.child(),
            ),
        ]
        profile = aws.iam.InstanceProfile(
            sanitize(f"{name}-profile", max_length=_MOST_LETTERS),
            path="/aws-pcs/",
            role=role.name,
            opts=self.child(),
        )
        self.role_name, self.profile_arn = role.name, after(profile.arn, rights)
        self.register_declared()

    def grant(self, rights: NodeRights) -> None:
        """Grant access to code and results, whose buckets may need the role's name first."""
        arns = (rights["code_bucket_arn"], rights["results_bucket_arn"], rights["kms_key_arn"])
        aws.iam.RolePolicy(
            f"{self._prefix}-data",
            role=self.role_name,
            policy=pulumi.Output.all(*arns).apply(lambda known: _policy(rights, *known)),
            opts=self.child(),
        )


def _policy(args: NodeRights, code: str, results: str, key: str) -> str:
    return iam.document(
        iam.allow(["s3:GetObject"], [f"{code}/{args['code']}/*"]),
        iam.allow(["s3:ListBucket"], [code]),
        iam.allow(["s3:PutObject"], [f"{results}/{args['results']}/*"]),
        iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [key]),
    )
