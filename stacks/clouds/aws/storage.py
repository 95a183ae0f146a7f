"""Buckets and file systems of a stack on AWS, and their alarms."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.aws.cluster.eks import AwsCluster
from components.aws.network.vpc import AwsNetwork
from components.aws.storage.alarms import AwsStorageAlarms, AwsStorageAlarmsArgs
from components.aws.storage.homes import MOUNTING_ACCOUNT
from components.aws.storage.tiers import AwsStorage, AwsStorageArgs
from components.aws.storage.volumes import lustre_source
from components.aws.validation.alert_topic import AwsAlertTopic
from infra.alarms import storage as storage_alarms
from infra.catalog.aws.storage_classes import COLD, COOL, STANDARD
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from stacks.parts import SharedFolder, Store

# Lustre links this folder to the checkpoint bucket.
_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class AwsStore(Store):
    """A store on AWS, with its buckets and their key."""

    tiers: AwsStorage
    disk_class: pulumi.Output[str] | None = None
    """Storage class of disks in the cluster; None where there is none yet."""


def store_on_aws(
    spec: StackSpec,
    on: AwsSpec,
    *,
    eks: AwsCluster,
    network: AwsNetwork,
    subnet_ids: Sequence[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
    members_on_nodes: bool = False,
) -> AwsStore:
    """Buckets, and optionally FSx for Lustre and EFS."""
    wanted, shared = spec.data, spec.data.shared_fs
    args = storage_args(spec, network, subnet_ids)
    args["client_security_group_ids"] = [eks.security_group_id]
    args["delete_checkpoints"] = wanted.checkpoints.in_bucket == "kept"
    args["load_balancer"] = on.load_balancer is not None
    if wanted.homes:
        args["homes_mounted_by"] = eks.roles_without_rights[MOUNTING_ACCOUNT]
        if members_on_nodes:
            args["members_on_nodes"] = True
    if shared:
        args["lustre"] = {
            "capacity_gib": shared.capacity_gib,
            "throughput_mb_s_per_tib": shared.throughput_mb_s_per_tib,
            "subnet_id": network.private_subnet_id_by_zone[shared.zone],
            "efa": shared.rdma,
        }
    tiers = AwsStorage(f"{spec.name}-storage", args, opts)
    checkpoints = None
    if shared and tiers.lustre:
        checkpoints = SharedFolder(
            volume={"source": lustre_source(tiers.lustre), "capacity_gib": shared.capacity_gib},
            folder=_CHECKPOINTS,
        )
    return AwsStore(
        checkpoint_uri=uri(tiers.checkpoint_bucket),
        dataset_uri=uri(tiers.dataset_bucket),
        artifact_uri=uri(tiers.artifact_bucket),
        checkpoints=checkpoints,
        ready=tiers,
        tiers=tiers,
    )


def storage_args(
    spec: StackSpec, network: AwsNetwork, subnet_ids: Sequence[pulumi.Input[str]]
) -> AwsStorageArgs:
    """Settings of the buckets, without file systems."""
    wanted = spec.data
    args: AwsStorageArgs = {
        "region": spec.region,
        "vpc_id": network.vpc_id,
        "subnet_ids": subnet_ids,
        "client_security_group_ids": [],
        "checkpoint_retention_days": wanted.checkpoints.expire_days,
        "noncurrent_days": wanted.noncurrent_days,
        "log_retention_days": wanted.log_retention_days,
        "force_destroy": not wanted.protect and wanted.on_destroy == "discard",
        "deletion_protection": wanted.protect,
    }
    if wanted.checkpoints.cool_after_days is not None:
        args["checkpoint_cool_days"] = wanted.checkpoints.cool_after_days
    if wanted.checkpoints.cold_after_days is not None:
        args["checkpoint_cold_days"] = wanted.checkpoints.cold_after_days
    return args


def alarms_on_aws(
    spec: StackSpec, tiers: AwsStorage, topic: AwsAlertTopic, opts: pulumi.ResourceOptions
) -> AwsStorageAlarms:
    """Alarms for administrators, also without monitoring in the cluster."""
    classes, shared = (STANDARD.name, COOL.name, COLD.name), spec.data.shared_fs
    args: AwsStorageAlarmsArgs = {
        "topic_arn": topic.topic_arn,
        "checkpoint_bucket": tiers.checkpoint_bucket,
        "checkpoint_classes": [
            {"storage_class": classes[where], "limit_gb": limit}
            for where, limit in storage_alarms.bucket_limits_gb(spec).items()
        ],
    }
    if shared and tiers.lustre:
        args["lustre"] = {
            "file_system_id": tiers.lustre.file_system_id,
            "least_free_gib": storage_alarms.LEAST_FREE * shared.capacity_gib,
        }
    if address := storage_alarms.runbooks_url(spec):
        args["runbooks_url"] = address
    return AwsStorageAlarms(f"{spec.name}-storage-alarms", args, opts)


def uri(bucket: pulumi.Output[str], folder: str = "") -> pulumi.Output[str]:
    """The URI of a bucket, or of a folder such as `/results`."""
    return pulumi.Output.concat("s3://", bucket, folder)
