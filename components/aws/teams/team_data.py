"""A team's part of the buckets and of the homes, not readable by other teams."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.pod_role import AwsPodRole
from components.base import Component, Options

# Below this folder every team has its own, in every bucket and file system.
TEAMS = "teams"
# Readable by every team, in the bucket of the datasets.
SHARED = "shared"
# The account of pods without a service account: a job needs no setting for its permissions.
SERVICE_ACCOUNT = "default"
# Whatever user a container runs as, the access point writes as this one: members share their files.
_USER_ID = 1000


class AwsTeamDataArgs(TypedDict):
    """The pods, and their data."""

    region: str
    """The provider's region."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    cluster_arn: pulumi.Input[str]
    """ARN of the cluster."""
    namespace: str
    """The team's namespace."""
    folder: str
    """Name of the team's folder in buckets and file systems."""
    checkpoint_bucket_arn: pulumi.Input[str]
    """ARN of the bucket of checkpoints."""
    dataset_bucket_arn: pulumi.Input[str]
    """ARN of the bucket of datasets."""
    kms_key_arn: pulumi.Input[str]
    """The key of the buckets."""
    homes_file_system_id: NotRequired[pulumi.Input[str]]
    """EFS file system of the homes. Default: the team has no home."""


class AwsTeamData(Component):
    """A role for the pods of the team's namespace, and an access point to the team's home.

    The role reads `shared/` and `teams/<folder>/` of the datasets, and reads, writes and deletes below
    `teams/<folder>/` of the checkpoints (deleted versions can be restored for a while); nothing else.

    Data outlives all of this: when the team is removed, or gets another folder, its objects and files stay
    where they are, accessible to administrators.
    """

    role_arn: pulumi.Output[str]
    """The role; dependents come after its permissions."""

    def __init__(self, name: str, args: AwsTeamDataArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        role = AwsPodRole(
            f"{name}-pods",
            {
                "cluster_name": args["cluster_name"],
                "cluster_arn": args["cluster_arn"],
                "namespace": args["namespace"],
                "service_account": SERVICE_ACCOUNT,
                "policy": pulumi.Output.all(
                    checkpoints=args["checkpoint_bucket_arn"],
                    datasets=args["dataset_bucket_arn"],
                    key_arn=args["kms_key_arn"],
                ).apply(lambda known: team_rights(region=args["region"], folder=args["folder"], **known)),
            },
            self.child(),
        )
        self.role_arn = role.role_arn
        # A plain attribute: None without homes.
        self.access_point_id = self._home(name, args)
        self.register_outputs({"role_arn": self.role_arn, "access_point_id": self.access_point_id})

    def _home(self, name: str, args: AwsTeamDataArgs) -> pulumi.Output[str] | None:
        """An access point to one folder, which EFS creates at the first mount; nothing outside is visible."""
        if "homes_file_system_id" not in args:
            return None
        point = aws.efs.AccessPoint(
            f"{name}-home",
            file_system_id=args["homes_file_system_id"],
            posix_user={"uid": _USER_ID, "gid": _USER_ID},
            root_directory={
                "path": f"/{TEAMS}/{args['folder']}",
                "creation_info": {"owner_uid": _USER_ID, "owner_gid": _USER_ID, "permissions": "0770"},
            },
            opts=self.child(),
        )
        return point.id


def team_rights(*, region: str, folder: str, checkpoints: str, datasets: str, key_arn: str) -> str:
    """The role's policy; the key works only through S3."""
    own = f"{TEAMS}/{folder}"
    writing = iam.allow(
        [
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
            "s3:GetObject",
            "s3:ListMultipartUploadParts",
            "s3:PutObject",
        ],
        [f"{checkpoints}/{own}/*"],
    )
    key = _through_s3(region, key_arn)
    return iam.document(*_read(datasets, SHARED, own), _listing(checkpoints, own), writing, key)


def reading_rights(*, region: str, folder: str, checkpoints: str, datasets: str, key_arn: str) -> str:
    """A policy that reads the same and writes none of it; with the key other objects may be written."""
    own = f"{TEAMS}/{folder}"
    read = (*_read(datasets, SHARED, own), *_read(checkpoints, own))
    return iam.document(*read, _through_s3(region, key_arn))


def _read(bucket: str, *folders: str) -> list[dict[str, object]]:
    return [
        _listing(bucket, *folders),
        iam.allow(["s3:GetObject"], [f"{bucket}/{folder}/*" for folder in folders]),
    ]


def _through_s3(region: str, key_arn: str) -> dict[str, object]:
    through = {"StringEquals": {"kms:ViaService": [f"s3.{region}.amazonaws.com"]}}
    return {**iam.allow(["kms:Decrypt", "kms:GenerateDataKey"], [key_arn]), "Condition": through}


def _listing(bucket: str, *folders: str) -> dict[str, object]:
    """Only below these folders: names of objects reveal their owners, too."""
    prefixes = [f"{folder}/*" for folder in folders]
    return {**iam.allow(["s3:ListBucket"], [bucket]), "Condition": {"StringLike": {"s3:prefix": prefixes}}}
