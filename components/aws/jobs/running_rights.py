"""Permissions that SageMaker needs to run something as a role: image, logs, network interfaces, disks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.aws import iam
from infra.jobs.aws.account_logs import JOB_LOGS, NOTEBOOK_LOGS

_CREATE, _STREAMS = "logs:CreateLogGroup", "logs:DescribeLogStreams"
_WRITES = ("logs:CreateLogStream", "logs:PutLogEvents")


@dataclass(frozen=True)
class RunningPlace:
    """Network, account and key of jobs and notebooks."""

    region: str
    account: str
    partition: str
    key: str
    """ARN of the key of their disks."""
    subnets: Sequence[str]
    groups: Sequence[str]
    """Ids of the security groups of their machines."""

    def arns(self, service: str, kind: str, *names: str) -> list[str]:
        """ARNs of things of one kind, such as `log-group:` or `subnet/`, in this account and region."""
        return [f"arn:{self.partition}:{service}:{self.region}:{self.account}:{kind}{name}" for name in names]


def running_rights(place: RunningPlace, image: str, *, domain: str = "") -> str:
    """A policy for jobs of one image; with `domain`, the id of a Studio domain, for its notebooks.

    Jobs write their log. Notebooks write streams of their domain in another group, and read the logs of jobs.
    Each creates its group if it is absent. CreateLogGroup is for the group (service authorization reference),
    but refusals name `log-group:<name>:log-stream:`.
    Names of streams: whitepaper "SageMaker Studio Administration Best Practices", Logging and monitoring.
    """
    jobs = place.arns("logs", "log-group:", JOB_LOGS, f"{JOB_LOGS}:*")
    logs = [iam.allow([_CREATE, _STREAMS, *_WRITES], jobs)]
    if domain:
        notebooks = place.arns("logs", "log-group:", NOTEBOOK_LOGS, f"{NOTEBOOK_LOGS}:*")
        own = place.arns("logs", "log-group:", f"{NOTEBOOK_LOGS}:log-stream:{domain}/*")
        logs = [iam.allow(_WRITES, own), iam.allow([_CREATE, _STREAMS], notebooks)]
        logs += [iam.allow([_STREAMS, "logs:GetLogEvents"], jobs[1:])]
    images = _images(place.partition, place.region, image)
    return iam.document(*images, *logs, _measures(), *_network(place), *_disks(place.key))


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


def _network(place: RunningPlace) -> list[Mapping[str, object]]:
    """Interfaces in the subnets of the stack, with its groups; the service makes them as the role.

    Actions: SageMaker developer guide, "SageMaker Roles" (CreateTrainingJob with a VPC). Types and condition
    keys: service authorization reference, Amazon EC2. That a condition on the interface holds for the calls
    of SageMaker: AWS limits its own AmazonSageMakerNotebooksServiceRolePolicy (version 10) in this way.
    """
    interfaces = place.arns("ec2", "network-interface/", "*")
    subnets = place.arns("ec2", "subnet/", *place.subnets)
    groups = place.arns("ec2", "security-group/", *place.groups)
    changes = [
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
    return [
        iam.allow(["ec2:CreateNetworkInterface"], [*interfaces, *subnets, *groups]),
        {**iam.allow(changes, interfaces), "Condition": {"ArnEquals": {"ec2:Subnet": subnets}}},
        iam.allow(looks, ["*"]),
    ]


def _disks(key: str) -> list[Mapping[str, object]]:
    """Disks of notebooks and of machines without local ones are encrypted with the stack's key.

    The service may also ask for `kms:Encrypt` where a job names the key of its results (botocore 1.44.5
    sagemaker/2017-07-24 OutputDataConfig KmsKeyId: required with an id or an alias; re:Post,
    sagemaker-s3-accessdenied-training). It discloses nothing.
    """
    for_aws = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    return [
        {**iam.allow(["kms:CreateGrant"], [key]), "Condition": for_aws},
        iam.allow(["kms:DescribeKey", "kms:Encrypt"], [key]),
    ]
