"""The storage tiers of a stack: a fast file system, object stores for three kinds of data, homes."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi

from components.aws import iam
from components.aws.account import AwsAccount, current_account
from components.aws.encryption import encryption_key
from components.aws.logs import logs_may_use
from components.aws.storage.access_log import AwsAccessLog
from components.aws.storage.bucket import AwsBucket, AwsBucketArgs
from components.aws.storage.homes import AwsHomes
from components.aws.storage.lustre import AwsLustre, log_group_name
from components.base import Component, Options


class LustreArgs(TypedDict):
    """The fast file system."""

    capacity_gib: pulumi.Input[int]
    """Storage in GiB: 1200 or a multiple of 2400; larger steps with EFA (see the catalog)."""
    throughput_mb_s_per_tib: pulumi.Input[int]
    """125, 250, 500 or 1000 MB/s per TiB. Cannot be changed later with EFA."""
    subnet_id: pulumi.Input[str]
    """One subnet, best in the zone of the nodes that train."""
    efa: NotRequired[bool]
    """Serve clients over EFA and GPUDirect Storage; can only be chosen at creation. Default: no."""


class AwsStorageArgs(TypedDict):
    """The tiers, their clients, and the retention of data."""

    region: str
    """Region of the provider in use; key policies name it."""
    vpc_id: pulumi.Input[str]
    """The VPC of the subnets."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets, one per zone: homes get a mount target in each."""
    client_security_group_ids: Sequence[pulumi.Input[str]]
    """Security groups of the nodes that may mount Lustre and homes."""
    checkpoint_retention_days: int
    """Days for which a checkpoint is kept in its bucket."""
    checkpoint_cool_days: NotRequired[int]
    """Days after which a checkpoint is moved to Standard-IA. Default: never."""
    checkpoint_cold_days: NotRequired[int]
    """Days after which it is moved to Glacier Instant Retrieval. Default: never."""
    delete_checkpoints: NotRequired[bool]
    """Whether deletions of checkpoints on Lustre are exported to their bucket. Default: no."""
    noncurrent_days: int
    """Days an overwritten or deleted object can still be restored, in every bucket."""
    log_retention_days: int
    """Days for which access logs of buckets and the log of failed imports and exports of Lustre are kept."""
    lustre: NotRequired[LustreArgs]
    """Default: no fast file system."""
    homes_mounted_by: NotRequired[pulumi.Input[str]]
    """Name of the role with which nodes mount home folders. Default: there are none."""
    members_on_nodes: NotRequired[bool]
    """Whether members are users of the nodes, as with Slurm; see `AwsHomesArgs`. Default: no."""
    load_balancer: NotRequired[bool]
    """Whether a load balancer writes its log beside those of the buckets. Default: no."""
    unnamed_key_of_checkpoints: NotRequired[Sequence[str]]
    """Starts of the names of roles whose checkpoints are accepted with `aws:kms` and no key; see
    `AwsBucketArgs`. Default: none."""
    force_destroy: NotRequired[bool]
    """Delete buckets together with the objects in them. Default: no."""
    deletion_protection: NotRequired[bool]
    """Refuse to delete Lustre and homes. Default: yes."""


class BucketPurpose(TypedDict, total=False):
    """Settings of one bucket that differ from the others; see `AwsBucketArgs`."""

    expire_days: int
    cool_after_days: int
    cold_after_days: int
    intelligent_tiering: bool
    object_lock: bool
    unnamed_key_roles: pulumi.Input[Sequence[str]]


class AwsStorage(Component):
    """Three buckets under one key, and on demand Lustre in front of two of them and EFS for homes.

    Checkpoints expire; datasets move between tiers by their use; artifacts stay, and single ones can be
    locked (S3 Object Lock is on, with no default retention). Buckets and file systems share one key: they
    hold the same data at different speeds.
    """

    checkpoint_bucket: pulumi.Output[str]
    """Bucket of checkpoints, which expire."""
    checkpoint_bucket_arn: pulumi.Output[str]
    """ARN of the bucket of checkpoints."""
    dataset_bucket: pulumi.Output[str]
    """Bucket of datasets."""
    dataset_bucket_arn: pulumi.Output[str]
    """ARN of the bucket of datasets."""
    artifact_bucket: pulumi.Output[str]
    """Bucket of artifacts, such as those of MLflow."""
    artifact_bucket_arn: pulumi.Output[str]
    """ARN of the bucket of artifacts."""
    kms_key_arn: pulumi.Output[str]
    """Key of buckets and file systems."""
    log_bucket: pulumi.Output[str]
    """Bucket of the others' access logs."""

    def __init__(self, name: str, args: AwsStorageArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        account = current_account(self)
        key = encryption_key(
            self,
            f"{name}-storage",
            account=account,
            purpose=f"Data of {name}: buckets, file systems and what is kept about runs",
            statements=lambda owner: storage_key_statements(owner, args["region"], f"{name}-lustre"),
        )
        self.kms_key_arn = key.arn
        log = AwsAccessLog(
            f"{name}-access-log",
            {
                "retention_days": args["log_retention_days"],
                "load_balancer": args.get("load_balancer", False),
                "force_destroy": args.get("force_destroy", False),
            },
            self.child(),
        )
        self.log_bucket = log.bucket
        life = _life(args)
        if starts := args.get("unnamed_key_of_checkpoints"):
            life["unnamed_key_roles"] = account.apply(
                lambda owner: [iam.roles_named(owner, start) for start in starts]
            )
        checkpoints = self._bucket(f"{name}-checkpoints", args, life)
        datasets = self._bucket(f"{name}-datasets", args, {"intelligent_tiering": True})
        artifacts = self._bucket(f"{name}-artifacts", args, {"object_lock": True})
        self.checkpoint_bucket, self.checkpoint_bucket_arn = checkpoints.bucket, checkpoints.arn
        self.dataset_bucket, self.dataset_bucket_arn = datasets.bucket, datasets.arn
        self.artifact_bucket, self.artifact_bucket_arn = artifacts.bucket, artifacts.arn
        self.lustre = self._lustre(f"{name}-lustre", args)
        self.homes = self._homes(f"{name}-homes", args)
        self.register_outputs(
            {
                "checkpoint_bucket": self.checkpoint_bucket,
                "dataset_bucket": self.dataset_bucket,
                "artifact_bucket": self.artifact_bucket,
                "kms_key_arn": self.kms_key_arn,
                "lustre_file_system_id": self.lustre.file_system_id if self.lustre else None,
                "homes_file_system_id": self.homes.file_system_id if self.homes else None,
            }
        )

    def _bucket(self, name: str, args: AwsStorageArgs, purpose: BucketPurpose) -> AwsBucket:
        common: AwsBucketArgs = {
            "kms_key_arn": self.kms_key_arn,
            "log_bucket": self.log_bucket,
            "noncurrent_days": args["noncurrent_days"],
            "force_destroy": args.get("force_destroy", False),
        }
        return AwsBucket(name, {**common, **purpose}, self.child())

    def _lustre(self, name: str, args: AwsStorageArgs) -> AwsLustre | None:
        if "lustre" not in args:
            return None
        return AwsLustre(
            name,
            {
                "vpc_id": args["vpc_id"],
                "subnet_id": args["lustre"]["subnet_id"],
                "capacity_gib": args["lustre"]["capacity_gib"],
                "throughput_mb_s_per_tib": args["lustre"]["throughput_mb_s_per_tib"],
                "efa": args["lustre"].get("efa", False),
                "client_security_group_ids": args["client_security_group_ids"],
                "kms_key_arn": self.kms_key_arn,
                "checkpoint_bucket": self.checkpoint_bucket,
                "dataset_bucket": self.dataset_bucket,
                "export_deletions": args.get("delete_checkpoints", False),
                "log_retention_days": args["log_retention_days"],
                "protect": args.get("deletion_protection", True),
            },
            self.child(),
        )

    def _homes(self, name: str, args: AwsStorageArgs) -> AwsHomes | None:
        if "homes_mounted_by" not in args:
            return None
        return AwsHomes(
            name,
            {
                "vpc_id": args["vpc_id"],
                "subnet_ids": args["subnet_ids"],
                "client_security_group_ids": args["client_security_group_ids"],
                "kms_key_arn": self.kms_key_arn,
                "mounting_role": args["homes_mounted_by"],
                "members_on_nodes": args.get("members_on_nodes", False),
                "protect": args.get("deletion_protection", True),
            },
            self.child(),
        )


def _life(args: AwsStorageArgs) -> BucketPurpose:
    life: BucketPurpose = {"expire_days": args["checkpoint_retention_days"]}
    if "checkpoint_cool_days" in args:
        life["cool_after_days"] = args["checkpoint_cool_days"]
    if "checkpoint_cold_days" in args:
        life["cold_after_days"] = args["checkpoint_cold_days"]
    return life


def storage_key_statements(account: AwsAccount, region: str, lustre_name: str) -> list[Mapping[str, object]]:
    """Key statements besides IAM: FSx's links to the buckets, and the log of those links.

    FSx creates one service-linked role per file system when the first bucket is linked; its name is not known
    before, so the statement matches its pattern, only through S3, only from this account.
    Source: FSx for Lustre guide, "Working with server-side encrypted Amazon S3 buckets".
    """
    linked_roles = (
        f"arn:{account.partition}:iam::{account.id}:role/aws-service-role/"
        "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*"
    )
    return [
        {
            "Sid": "LustreLinksReadAndWriteBuckets",
            "Effect": "Allow",
            "Principal": {"AWS": "*"},
            "Action": [
                "kms:Decrypt",
                "kms:DescribeKey",
                "kms:Encrypt",
                "kms:GenerateDataKey*",
                "kms:ReEncrypt*",
            ],
            "Resource": "*",
            "Condition": {
                "StringEquals": {
                    "kms:CallerAccount": account.id,
                    "kms:ViaService": f"s3.{region}.amazonaws.com",
                },
                "ArnLike": {"aws:PrincipalArn": linked_roles},
            },
        },
        *logs_may_use(region, log_group_name(lustre_name))(account),
    ]
