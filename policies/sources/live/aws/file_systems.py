"""File systems: FSx and EFS.

Shapes: internal/service/fsx/{lustre,openzfs,ontap}_file_system.go, data_repository_association.go and
internal/service/efs of terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.mapping import LiveKind, One, Reader, Shape, View, same
from policies.sources.live.queries import ApiQuery

_SYSTEMS, _EFS = "fsx.DescribeFileSystems", "efs.DescribeFileSystems"
QUERIES = (
    ApiQuery("fsx", "DescribeFileSystems", "FileSystems"),
    ApiQuery("fsx", "DescribeDataRepositoryAssociations", "Associations"),
    ApiQuery("efs", "DescribeFileSystems", "FileSystems"),
    ApiQuery("efs", "DescribeAccessPoints", "AccessPoints"),
    ApiQuery("efs", "DescribeMountTargets", "MountTargets", of=_EFS, by={"FileSystemId": "FileSystemId"}),
    ApiQuery("efs", "DescribeBackupPolicy", "BackupPolicy", of=_EFS, by={"FileSystemId": "FileSystemId"},
             unset=("PolicyNotFound",)),
    ApiQuery("efs", "DescribeReplicationConfigurations", "Replications",
             unset=("ReplicationNotFound",)),
)  # fmt: skip


def _fsx(kind: str, type: str, shape: Shape) -> LiveKind:
    return LiveKind(
        kind,
        _SYSTEMS,
        "{FileSystemId}",
        {
            "arn": "ResourceARN",
            "dnsName": "DNSName",
            **same("KmsKeyId", "OwnerId", "StorageCapacity", "StorageType", "VpcId"),
            **shape,
        },
        tags="Tags",
        when=lambda view: view.at("FileSystemType") == type and view.at("Lifecycle") != "DELETING",
        keys=("kmsKeyId",),
    )


def _first(path: str) -> Reader:
    def read(view: View) -> Any:
        return next(iter(view.at(path) or ()), None)

    return read


_LUSTRE = "LustreConfiguration"
_SETTINGS = {
    **same("AutomaticBackupRetentionDays", "CopyTagsToBackups", "DeploymentType"),
    **same("WeeklyMaintenanceStartTime"),
}


def _below(prefix: str, shape: dict[str, str]) -> dict[str, str]:
    return {name: f"{prefix}.{path}" for name, path in shape.items()}


KINDS = (
    _fsx(
        "aws:fsx/lustreFileSystem:LustreFileSystem",
        "LUSTRE",
        {
            **_below(_LUSTRE, _SETTINGS),
            "autoImportPolicy": f"{_LUSTRE}.DataRepositoryConfiguration.AutoImportPolicy",
            "dataCompressionType": f"{_LUSTRE}.DataCompressionType",
            "exportPath": f"{_LUSTRE}.DataRepositoryConfiguration.ExportPath",
            "fileSystemTypeVersion": "FileSystemTypeVersion",
            "importPath": f"{_LUSTRE}.DataRepositoryConfiguration.ImportPath",
            "mountName": f"{_LUSTRE}.MountName",
            "perUnitStorageThroughput": f"{_LUSTRE}.PerUnitStorageThroughput",
            "subnetIds": _first("SubnetIds"),
        },
    ),
    _fsx(
        "aws:fsx/openZfsFileSystem:OpenZfsFileSystem",
        "OPENZFS",
        {
            **_below("OpenZFSConfiguration", _SETTINGS),
            "copyTagsToVolumes": "OpenZFSConfiguration.CopyTagsToVolumes",
            "subnetIds": "SubnetIds",
            "throughputCapacity": "OpenZFSConfiguration.ThroughputCapacity",
        },
    ),
    _fsx(
        "aws:fsx/ontapFileSystem:OntapFileSystem",
        "ONTAP",
        {
            **_below(
                "OntapConfiguration",
                {key: path for key, path in _SETTINGS.items() if key != "copyTagsToBackups"},
            ),
            "subnetIds": "SubnetIds",
        },
    ),
    LiveKind(
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
        "fsx.DescribeDataRepositoryAssociations",
        "{AssociationId}",
        {
            "arn": "ResourceARN",
            **same("AssociationId", "DataRepositoryPath", "FileSystemId", "FileSystemPath"),
            **same("ImportedFileChunkSize"),
        },
        tags="Tags",
        when=lambda view: view.at("Lifecycle") != "DELETING",
    ),
    LiveKind(
        "aws:efs/fileSystem:FileSystem",
        _EFS,
        "{FileSystemId}",
        {
            "arn": "FileSystemArn",
            **same("AvailabilityZoneName", "CreationToken", "Encrypted", "KmsKeyId", "Name"),
            **same("NumberOfMountTargets", "OwnerId", "PerformanceMode", "ProvisionedThroughputInMibps"),
            **same("ThroughputMode"),
        },
        tags="Tags",
        when=lambda view: view.at("LifeCycleState") not in ("deleting", "deleted"),
        keys=("kmsKeyId",),
    ),
    LiveKind(
        "aws:efs/accessPoint:AccessPoint",
        "efs.DescribeAccessPoints",
        "{AccessPointId}",
        {
            "arn": "AccessPointArn",
            **same("FileSystemId", "OwnerId"),
            "posixUser": One("PosixUser", same("Gid", "Uid", "SecondaryGids")),
            "rootDirectory": One(
                "RootDirectory",
                {
                    "path": "Path",
                    "creationInfo": One("CreationInfo", same("OwnerGid", "OwnerUid", "Permissions")),
                },
            ),
        },
        tags="Tags",
        when=lambda view: view.at("LifeCycleState") not in ("deleting", "deleted"),
    ),
    LiveKind(
        "aws:efs/mountTarget:MountTarget",
        "efs.DescribeMountTargets",
        "{MountTargetId}",
        {
            **same("AvailabilityZoneId", "AvailabilityZoneName", "FileSystemId", "IpAddress"),
            **same("NetworkInterfaceId", "OwnerId", "SubnetId"),
        },
        owner="{asked.FileSystemId}",
    ),
    LiveKind(
        "aws:efs/backupPolicy:BackupPolicy",
        "efs.DescribeBackupPolicy",
        "{asked.FileSystemId}",
        {"fileSystemId": "asked.FileSystemId", "backupPolicy": lambda view: {"status": view.at("Status")}},
        owner="{asked.FileSystemId}",
    ),
    LiveKind(
        "aws:efs/replicationConfiguration:ReplicationConfiguration",
        "efs.DescribeReplicationConfigurations",
        "{SourceFileSystemId}",
        {
            **same("SourceFileSystemId", "SourceFileSystemArn"),
            "destination": lambda view: next(
                (
                    {
                        "region": one.get("Region"),
                        "fileSystemId": one.get("FileSystemId"),
                        "status": one.get("Status"),
                    }
                    for one in view.at("Destinations") or ()
                ),
                None,
            ),
        },
        when=lambda view: view.at("SourceFileSystemRegion") in (None, view.at("region")),
    ),
)
