"""EFS for home folders: small files, many nodes, every zone; not for the checkpoints of large jobs."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import iam
from components.aws.network.connections import connect, tcp
from components.base import Component, Options
from components.ordering import after

NFS_PORT = 2049
# The account of the driver's pods on the nodes, which mount for all pods.
MOUNTING_ACCOUNT = "efs-csi-node-sa"
_MOUNTING = ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
_AS_ROOT = "elasticfilesystem:ClientRootAccess"


class AwsHomesArgs(TypedDict):
    """Network and key of the homes."""

    vpc_id: pulumi.Input[str]
    """The VPC of the subnets."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """One subnet per zone (EFS allows one mount target per zone)."""
    client_security_group_ids: Sequence[pulumi.Input[str]]
    """Security groups of the nodes that mount it."""
    kms_key_arn: pulumi.Input[str]
    """Key of the file system."""
    mounting_role: pulumi.Input[str]
    """Name of the role that mounts: it may mount this file system and, by this policy, no other."""
    members_on_nodes: NotRequired[bool]
    """Whether members are users of the nodes, as with Slurm: the role then mounts the whole file system, and
    root of a node makes their folders. Default: no, each pod mounts an access point."""
    protect: NotRequired[bool]
    """Refuse to delete the file system (EFS has no such switch, so Pulumi refuses). Default: yes."""


class AwsHomes(Component):
    """An encrypted, elastic EFS with daily backups and cold files in Infrequent Access.

    It is mounted over TLS through access points, by one role.
    """

    file_system_id: pulumi.Output[str]
    """Id of the file system."""
    security_group_id: pulumi.Output[str]
    """Security group of the mount targets."""

    def __init__(self, name: str, args: AwsHomesArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        whole = args.get("members_on_nodes", False)
        mounting = [*_MOUNTING, _AS_ROOT] if whole else _MOUNTING
        system = aws.efs.FileSystem(
            name,
            encrypted=True,
            kms_key_id=args["kms_key_arn"],
            throughput_mode="elastic",
            # Two entries: EFS takes one transition per entry. A file that is used again is moved back.
            lifecycle_policies=[
                {"transition_to_ia": "AFTER_30_DAYS"},
                {"transition_to_primary_storage_class": "AFTER_1_ACCESS"},
            ],
            opts=self.child(pulumi.ResourceOptions(protect=args.get("protect", True))),
        )
        aws.efs.BackupPolicy(
            f"{name}-backup", file_system_id=system.id, backup_policy={"status": "ENABLED"}, opts=self.child()
        )
        policy = aws.efs.FileSystemPolicy(
            f"{name}-policy",
            file_system_id=system.id,
            policy=pulumi.Output.json_dumps(file_system_policy(system.arn, whole=whole)),
            opts=self.child(),
        )
        # By its ARN: EFS has four conditions for clients, none of them about tags (EFS user guide, "Using
        # IAM to control access to file systems", read 2026-11-23).
        rights = aws.iam.RolePolicy(
            f"{name}-mounting",
            role=args["mounting_role"],
            policy=system.arn.apply(lambda arn: iam.document(iam.allow(mounting, [arn]))),
            opts=self.child(),
        )
        group, targets = self._mount_targets(name, args, system)
        # A mount fails before there is a target in its zone: dependents of the id wait for all of them.
        self.file_system_id = after(system.id, [policy, rights, *targets])
        self.security_group_id = group.id
        self.register_declared()

    def _mount_targets(
        self, name: str, args: AwsHomesArgs, system: aws.efs.FileSystem
    ) -> tuple[aws.ec2.SecurityGroup, list[aws.efs.MountTarget]]:
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="EFS: NFS from the nodes that mount homes",
            vpc_id=args["vpc_id"],
            opts=self.child(),
        )
        for index, client in enumerate(args["client_security_group_ids"]):
            connect(
                self,
                f"{name}-client{index}",
                source=client,
                target=group.id,
                traffic=tcp((NFS_PORT, NFS_PORT)),
            )
        targets = [
            aws.efs.MountTarget(
                f"{name}-target{index}",
                file_system_id=system.id,
                subnet_id=subnet_id,
                security_groups=[group.id],
                opts=self.child(),
            )
            for index, subnet_id in enumerate(args["subnet_ids"])
        ]
        return group, targets


def file_system_policy(arn: pulumi.Input[str], *, whole: bool = False) -> Mapping[str, pulumi.Input[object]]:
    """Mounts require an allowed identity, TLS and, unless `whole`, an access point; root is denied then.

    A file system with a policy loses EFS's default that all clients may mount, and this one allows none: what
    is not denied here must be allowed by an IAM policy. Source: EFS user guide, "Using IAM to control file
    system data access" and "Working with Amazon EFS access points". Untested in a real account.
    """
    denials: list[tuple[str, object, object]] = [
        ("TlsOnly", "*", {"Bool": {"aws:SecureTransport": "false"}}),
        ("ThroughAccessPoints", _MOUNTING, {"Null": {"elasticfilesystem:AccessPointArn": "true"}}),
        ("NeverAsRoot", _AS_ROOT, None),
    ]
    if whole:
        del denials[1:]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": sid,
                "Effect": "Deny",
                "Principal": {"AWS": "*"},
                "Action": action,
                "Resource": arn,
                **({"Condition": condition} if condition else {}),
            }
            for sid, action, condition in denials
        ],
    }
