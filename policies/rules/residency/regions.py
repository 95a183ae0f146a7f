"""Regions of resources that store or process data, and of their copies."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.properties import each, raw
from policies.stack import Stack

_CLUSTERS = ("aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster")
_BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2", "gcp:storage/bucket:Bucket")
_DATASET, _LOGS = "gcp:bigquery/dataset:Dataset", "aws:cloudwatch/logGroup:LogGroup"
HOLDERS = (
    *(*_CLUSTERS, *_BUCKETS, "aws:s3/directoryBucket:DirectoryBucket"),
    *("aws:eks/nodeGroup:NodeGroup", "aws:ec2/instance:Instance", "aws:ebs/volume:Volume"),
    *("aws:efs/fileSystem:FileSystem", "aws:fsx/lustreFileSystem:LustreFileSystem"),
    *("aws:fsx/openZfsFileSystem:OpenZfsFileSystem", "aws:fsx/ontapFileSystem:OntapFileSystem"),
    *("aws:rds/cluster:Cluster", "aws:rds/clusterInstance:ClusterInstance", "aws:rds/instance:Instance"),
    *("aws:dynamodb/table:Table", "aws:ecr/repository:Repository", "aws:secretsmanager/secret:Secret"),
    *("aws:kms/key:Key", _LOGS, "aws:backup/vault:Vault"),
    *("gcp:container/nodePool:NodePool", "gcp:compute/instance:Instance", "gcp:compute/disk:Disk"),
    *("gcp:filestore/instance:Instance", "gcp:lustre/instance:Instance"),
    *("gcp:sql/databaseInstance:DatabaseInstance", "gcp:artifactregistry/repository:Repository"),
    *(_DATASET, "gcp:kms/keyRing:KeyRing"),
)
_LOG_BUCKET = "gcp:logging/projectBucketConfig:ProjectBucketConfig"
_HERE = "its own region"
# By kind: properties with a region or zone, an ARN, or the name of a bucket or dataset; _HERE is for
# resources that are copies themselves, in their own region.
_COPIES: Mapping[str, tuple[str, ...]] = {
    "aws:s3/bucketReplicationConfig:BucketReplicationConfig": ("rules.destination.bucket",),
    "aws:s3/bucket:Bucket": ("replicationConfiguration.rules.destination.bucket",),
    "aws:s3/bucketV2:BucketV2": ("replicationConfigurations.rules.destinations.bucket",),
    "aws:efs/replicationConfiguration:ReplicationConfiguration": (
        "destination.region",
        "destination.availabilityZoneName",
    ),
    "aws:ecr/replicationConfiguration:ReplicationConfiguration": (
        "replicationConfiguration.rules.destinations.region",
    ),
    "aws:backup/plan:Plan": ("rules.copyActions.destinationVaultArn",),
    "aws:secretsmanager/secret:Secret": ("replicas.region",),
    "aws:dynamodb/table:Table": ("replicas.regionName",),
    "aws:dynamodb/globalTable:GlobalTable": ("replicas.regionName",),
    "aws:dynamodb/tableReplica:TableReplica": (_HERE,),
    "aws:kms/replicaKey:ReplicaKey": (_HERE,),
    "aws:kms/replicaExternalKey:ReplicaExternalKey": (_HERE,),
    "aws:rds/instanceAutomatedBackupsReplication:InstanceAutomatedBackupsReplication": (_HERE,),
    "aws:rds/snapshotCopy:SnapshotCopy": ("destinationRegion", _HERE),
    "aws:rds/clusterSnapshotCopy:ClusterSnapshotCopy": ("destinationRegion", _HERE),
    "aws:ebs/snapshotCopy:SnapshotCopy": (_HERE,),
    "aws:ec2/amiCopy:AmiCopy": (_HERE,),
    "aws:cloudwatch/logSubscriptionFilter:LogSubscriptionFilter": ("destinationArn",),
    "aws:ec2/flowLog:FlowLog": ("logDestination",),
    "aws:cloudtrail/trail:Trail": ("s3BucketName",),
    "gcp:secretmanager/secret:Secret": ("replication.userManaged.replicas.location", "replication.auto"),
    "gcp:sql/databaseInstance:DatabaseInstance": ("settings.backupConfiguration.location",),
    "gcp:filestore/backup:Backup": ("location",),
    "gcp:logging/projectSink:ProjectSink": ("destination",),
    "gcp:logging/folderSink:FolderSink": ("destination",),
    "gcp:logging/organizationSink:OrganizationSink": ("destination",),
}


@CATALOG.rule_around(
    "MLS-RES-01",
    "critical",
    HOLDERS,
    "Laws and contracts limit the regions of data; one provider without a region can violate them.",
    "Create it in an allowed region, or allow the region: allowed_regions in the settings.",
)
def everything_is_in_its_region(holder: Resource, stack: Stack) -> Iterator[Violation]:
    """Resources that store or process data have a region, and it is allowed."""
    allowed = stack.once(_allowed)
    found = list(_places(holder))
    if not found:
        yield Violation("its region is not known", "region", "Give its provider a region.")
    for path, place in found:
        if region_of(place) not in allowed:
            yield Violation(f"{place} is not in {', '.join(sorted(allowed))}", path)


@CATALOG.rule_around(
    "MLS-RES-02",
    "high",
    tuple(_COPIES),
    "A replica, a backup, a key or a log elsewhere holds the same data under another law.",
    "Copy to an allowed region, or allow the region: allowed_regions in the settings.",
)
def copies_stay(copied: Resource, stack: Stack) -> Iterator[Violation]:
    """Replicas, copies of backups, keys and logs stay in the allowed regions."""
    allowed, found = stack.once(_allowed), False
    for named in _COPIES[copied.kind]:
        targets = _places(copied) if named == _HERE else _targets(copied, named)
        for path, target in targets:
            found = True
            place = _place(copied, named, target, stack)
            if place not in allowed:
                yield Violation(f"{place} is not in {', '.join(sorted(allowed))}", path)
    if not found:
        raise NotApplicableError("it has no copies")


def _allowed(stack: Stack) -> frozenset[str]:
    if stack.settings.allowed_regions:
        return frozenset(stack.settings.allowed_regions)
    places = [place for cluster in stack.all(*_CLUSTERS) for _, place in _places(cluster)]
    if not places:
        raise NotApplicableError("the settings allow no region, and the stack has no cluster as default")
    return frozenset(region_of(place) for place in places)


def _places(holder: Resource) -> Iterator[tuple[str, Any]]:
    """(property, region or zone) of a resource. A bucket of two regions is in both."""
    if holder.kind.startswith("aws:"):
        # Its own region, which may be unknown; else that of its provider.
        place = holder.props.get("region") or holder.region
        if place:
            yield "region", place
        return
    two = (holder.props.get("customPlacementConfig") or {}).get("dataLocations") or ()
    if two:
        yield from (("customPlacementConfig.dataLocations", place) for place in two)
        return
    for key in ("location", "region", "zone"):
        if holder.props.get(key):
            yield key, holder.props[key]
            return
    if holder.region:
        yield "region", holder.region


def region_of(place: Any) -> str:
    """The region of a region or zone, of AWS or of Google Cloud, in lower case; a link ends in it."""
    name = str(place).rpartition("/")[2].lower()
    dashes = name.split("-")
    if len(dashes) == 3 and dashes[2].isalpha() and len(dashes[2]) == 1:
        return f"{dashes[0]}-{dashes[1]}"  # us-central1-a
    return name[:-1] if len(dashes) > 2 and name[-1].isalpha() and name[-2].isdigit() else name


def _place(copied: Resource, named: str, target: Any, stack: Stack) -> str:
    """The region of a target. Raises UndeterminedError for targets outside of the stack."""
    if named == "replication.auto":
        return "any region that Google chooses"
    if not is_unknown(target):
        text = str(target)
        if text.startswith("arn:") and text.split(":")[3]:
            return region_of(text.split(":")[3])
        if "/locations/" in text:
            return region_of(text.partition("/locations/")[2].partition("/")[0])
        if not text.startswith("arn:") and named not in ("s3BucketName", "destination"):
            return region_of(text)
        target = text if text.startswith("arn:") else text.rpartition("/")[2]
    # An ARN of S3 has no region, and that of a new resource is unknown: resolve it in the stack.
    bucket = stack.referred(copied, target, named.partition(".")[0], *_BUCKETS, _DATASET, _LOGS, _LOG_BUCKET)
    place = next((place for _, place in _places(bucket)), None) if bucket is not None else None
    if place is None:
        raise UndeterminedError(f"{named}: the region of {target!r} is not in the stack")
    return region_of(place)


def _targets(copied: Resource, named: str) -> Iterator[tuple[str, Any]]:
    """(path, value) of a property, also an unknown one, without rules that are Disabled."""
    *above, last = named.split(".")
    off = [
        path
        for depth in range(1, len(above) + 1)
        for path, one in each(copied.props, *above[:depth])
        if one.get("status") == "Disabled"
    ]
    for path, holder in each(copied.props, *above):
        value = raw(holder, last)
        inside = any(path == one or path.startswith(f"{one}.") for one in off)
        if not inside and (is_unknown(value) or value not in (None, "", [])):
            yield f"{path}.{last}".lstrip("."), value
