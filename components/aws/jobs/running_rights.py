"""Permissions that SageMaker needs to run something as a role: image, logs, network interfaces, disks."""

from collections.abc import Mapping
from typing import Final

from components.aws import iam

JOB_LOGS: Final = "/aws/sagemaker/TrainingJobs"
"""The log group of every training job of an account in a region; the service supports no other."""
NOTEBOOK_LOGS: Final = "/aws/sagemaker/studio"
_WRITES = ("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents")
_READS = ("logs:DescribeLogStreams", "logs:GetLogEvents")


def running_rights(
    *, region: str, account: str, partition: str, key: str, image: str, notebook: bool = False
) -> str:
    """A policy for jobs of one image, or for notebooks; `key` is the ARN of the key of their disks.

    Jobs write their log. Notebooks write another one, and read the logs of jobs.
    """
    logs = f"arn:{partition}:logs:{region}:{account}:log-group"
    written = iam.allow(_WRITES, [f"{logs}:{NOTEBOOK_LOGS if notebook else JOB_LOGS}:*"])
    shown = [iam.allow(_READS, [f"{logs}:{JOB_LOGS}:*"])] if notebook else []
    images = _images(partition, region, image)
    return iam.document(*images, written, *shown, _measures(), *_network(), *_disks(key))


def _images(partition: str, here: str, image: str) -> list[Mapping[str, object]]:
    """The one repository of the image of jobs; the login to registries has no resource."""
    host, _, path = image.partition("/")
    owner, region = host.split(".")[0], host.split(".")[3] if host.count(".") > 3 else here
    repository = path.partition("@")[0].partition(":")[0]
    arn = f"arn:{partition}:ecr:{region}:{owner}:repository/{repository}"
    pulled = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    return [iam.allow(["ecr:GetAuthorizationToken"], ["*"]), iam.allow(pulled, [arn])]


def _measures() -> Mapping[str, object]:
    measured = {"StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}}
    return {**iam.allow(["cloudwatch:PutMetricData"], ["*"]), "Condition": measured}


def _network() -> list[Mapping[str, object]]:
    """Interfaces in the subnets of a job. The service creates and deletes them as the role, without names.

    Source: SageMaker developer guide, "SageMaker Roles" (CreateTrainingJob with a VPC).
    """
    changes = [
        "ec2:CreateNetworkInterface",
        "ec2:CreateNetworkInterfacePermission",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteNetworkInterfacePermission",
    ]
    looks = [
        "ec2:DescribeDhcpOptions",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
    ]
    return [iam.allow(changes, ["*"]), iam.allow(looks, ["*"])]


def _disks(key: str) -> list[Mapping[str, object]]:
    """Disks of notebooks and of machines without local ones are encrypted with the stack's key."""
    for_aws = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    return [
        {**iam.allow(["kms:CreateGrant"], [key]), "Condition": for_aws},
        iam.allow(["kms:DescribeKey"], [key]),
    ]
