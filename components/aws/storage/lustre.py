"""FSx for Lustre: the fast tier, backed by the checkpoint and dataset buckets."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from components.aws import logs
from components.aws.network.connections import ALL_TRAFFIC, Traffic, connect, tcp
from components.base import Component, Options
from components.ordering import after

# LNet's TCP ports. Source: FSx for Lustre guide, "File system access control with Amazon VPC".
LNET_PORTS = ((988, 988), (1018, 1023))


class AwsLustreArgs(TypedDict):
    """Size, place and backing buckets of one file system."""

    vpc_id: pulumi.Input[str]
    """The VPC of the subnet."""
    subnet_id: pulumi.Input[str]
    """One subnet: the file system is in one zone, best that of the nodes which train."""
    capacity_gib: pulumi.Input[int]
    """Storage in GiB: 1200 or a multiple of 2400; larger steps with EFA (see the catalog)."""
    throughput_mb_s_per_tib: pulumi.Input[int]
    """125, 250, 500 or 1000 MB/s per TiB. Cannot be changed later with EFA."""
    efa: NotRequired[bool]
    """Serve clients over EFA and GPUDirect Storage; can only be chosen at creation. Default: no."""
    client_security_group_ids: Sequence[pulumi.Input[str]]
    """Security groups of the nodes that mount it; rules are added to these groups, too."""
    kms_key_arn: pulumi.Input[str]
    """Key of the file system."""
    checkpoint_bucket: pulumi.Input[str]
    """Linked to `/checkpoints`: files written there are exported automatically."""
    dataset_bucket: pulumi.Input[str]
    """Linked to `/datasets`: objects of the bucket are imported automatically."""
    log_retention_days: int
    """Days for which the log of failed imports and exports is kept."""
    export_deletions: NotRequired[bool]
    """Whether deletions below `/checkpoints` are exported to the bucket, too. Default: no."""
    protect: NotRequired[bool]
    """Refuse to delete the file system (FSx has no such switch, so Pulumi refuses). Default: yes."""


class AwsLustre(Component):
    """PERSISTENT_2 SSD, encrypted, LZ4-compressed, with both buckets linked.

    Only `/checkpoints` and `/datasets` have a durable copy. FSx takes no backups of a file system that is
    linked to S3, so files elsewhere are lost with the file system.
    """

    file_system_id: pulumi.Output[str]
    """Id of the file system."""
    dns_name: pulumi.Output[str]
    """DNS name for mounting."""
    mount_name: pulumi.Output[str]
    """Mount name of the file system."""
    security_group_id: pulumi.Output[str]
    """Security group of the file system."""

    def __init__(self, name: str, args: AwsLustreArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        group, own = self._security_group(name, args)
        clients = self._client_rules(name, args, group)
        system = self._file_system(name, args, group, own)
        # Mounting before the links exist would show empty folders: dependents of these wait for the links.
        mountable = [*self._links(name, args, system), *clients]
        self.file_system_id = after(system.id, mountable)
        self.dns_name = after(system.dns_name, mountable)
        self.mount_name = after(system.mount_name, mountable)
        self.security_group_id = group.id
        self.register_declared()

    def _security_group(
        self, name: str, args: AwsLustreArgs
    ) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        """The group of the servers, and rules among the servers.

        FSx refuses to create the file system before these exist. It does not require those of clients, whose
        groups are created with the cluster minutes later: both are created at the same time.
        """
        group = aws.ec2.SecurityGroup(
            f"{name}-group",
            description="FSx for Lustre: its servers, reached by the nodes that mount it",
            vpc_id=args["vpc_id"],
            opts=self.child(),
        )
        own = connect(self, f"{name}-servers", source=group.id, target=group.id, traffic=_traffic(args))
        return group, own

    def _client_rules(
        self, name: str, args: AwsLustreArgs, group: aws.ec2.SecurityGroup
    ) -> list[pulumi.Resource]:
        """Rules both ways between servers and clients: both sides open connections."""
        traffic = _traffic(args)
        rules: list[pulumi.Resource] = []
        for index, client in enumerate(args["client_security_group_ids"]):
            rules += connect(
                self, f"{name}-client{index}-calls", source=client, target=group.id, traffic=traffic
            )
            rules += connect(
                self, f"{name}-client{index}-called", source=group.id, target=client, traffic=traffic
            )
        return rules

    def _file_system(
        self, name: str, args: AwsLustreArgs, group: aws.ec2.SecurityGroup, rules: list[pulumi.Resource]
    ) -> aws.fsx.LustreFileSystem:
        log = logs.log_group(
            self,
            f"{name}-log",
            log_group_name=log_group_name(name),
            retention_days=args["log_retention_days"],
            key_arn=args["kms_key_arn"],
        )
        efa = args.get("efa", False)
        return aws.fsx.LustreFileSystem(
            name,
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            file_system_type_version="2.15",
            subnet_ids=args["subnet_id"],
            storage_capacity=args["capacity_gib"],
            per_unit_storage_throughput=args["throughput_mb_s_per_tib"],
            metadata_configuration={"mode": "AUTOMATIC"},
            efa_enabled=True if efa else None,
            data_compression_type="LZ4",
            kms_key_id=args["kms_key_arn"],
            security_group_ids=[group.id],
            log_configuration={"level": "WARN_ERROR", "destination": log.arn},
            automatic_backup_retention_days=0,
            skip_final_backup=True,
            opts=self.child(pulumi.ResourceOptions(depends_on=rules, protect=args.get("protect", True))),
        )

    def _links(
        self, name: str, args: AwsLustreArgs, system: aws.fsx.LustreFileSystem
    ) -> list[aws.fsx.DataRepositoryAssociation]:
        # By default, a deleted checkpoint file is not exported as a deletion: freeing space on the
        # fast tier must not touch the durable copy, which the bucket's own lifecycle expires. The metadata of
        # existing objects is imported at once, so that a new file system shows old checkpoints.
        deletions = ["DELETED"] if args.get("export_deletions", False) else []
        checkpoints = aws.fsx.DataRepositoryAssociation(
            f"{name}-checkpoints",
            file_system_id=system.id,
            file_system_path="/checkpoints",
            data_repository_path=pulumi.Output.concat("s3://", args["checkpoint_bucket"]),
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=False,
            s3={"auto_export_policy": {"events": ["NEW", "CHANGED", *deletions]}},
            opts=self.child(),
        )
        datasets = aws.fsx.DataRepositoryAssociation(
            f"{name}-datasets",
            file_system_id=system.id,
            file_system_path="/datasets",
            data_repository_path=pulumi.Output.concat("s3://", args["dataset_bucket"]),
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=False,
            s3={"auto_import_policy": {"events": ["NEW", "CHANGED", "DELETED"]}},
            opts=self.child(),
        )
        return [checkpoints, datasets]


def log_group_name(name: str) -> str:
    """The log group of the file system `name`; FSx accepts only groups below `/aws/fsx`."""
    return f"/aws/fsx/{name}"


def _traffic(args: AwsLustreArgs) -> Traffic:
    return ALL_TRAFFIC if args.get("efa", False) else tcp(*LNET_PORTS)
