"""Required tags and labels of AWS and Google Cloud, and their propagation."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource, is_unknown
from policies.rules.pools import NODE_GROUP, template_of
from policies.rules.properties import raw
from policies.stack import Stack

# Kinds that cost money or store data; all of them support tags or labels.
TAGGED = (
    *("aws:eks/cluster:Cluster", NODE_GROUP, "aws:ec2/instance:Instance", "aws:ebs/volume:Volume"),
    *("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2", "aws:efs/fileSystem:FileSystem"),
    *("aws:fsx/lustreFileSystem:LustreFileSystem", "aws:fsx/openZfsFileSystem:OpenZfsFileSystem"),
    *("aws:rds/cluster:Cluster", "aws:rds/clusterInstance:ClusterInstance", "aws:rds/instance:Instance"),
    *("aws:ecr/repository:Repository", "aws:dynamodb/table:Table", "aws:secretsmanager/secret:Secret"),
    *("aws:kms/key:Key", "aws:cloudwatch/logGroup:LogGroup", "aws:ec2/natGateway:NatGateway"),
    *("aws:ec2/capacityReservation:CapacityReservation", "aws:lb/loadBalancer:LoadBalancer"),
    *("gcp:container/cluster:Cluster", "gcp:compute/instance:Instance", "gcp:compute/disk:Disk"),
    *("gcp:storage/bucket:Bucket", "gcp:filestore/instance:Instance", "gcp:lustre/instance:Instance"),
    *("gcp:artifactregistry/repository:Repository", "gcp:secretmanager/secret:Secret"),
    *("gcp:bigquery/dataset:Dataset", "gcp:kms/cryptoKey:CryptoKey"),
)
_GROUP_TAG = "aws:autoscaling/tag:Tag"
_LUSTRE, _OPEN_ZFS = TAGGED[7], TAGGED[8]
_DATABASES = ("aws:rds/cluster:Cluster", "aws:rds/instance:Instance")


@CATALOG.rule_around(
    "MLS-TAG-01",
    "high",
    TAGGED,
    "Without them payer, owner, class of data and end of life are unknown.",
    "Add the tag, preferably to all: defaultTags of the AWS provider, defaultLabels of Google's.",
    ("CKV_GCP_21",),
)
def required_tags_are_set(resource: Resource, stack: Stack) -> Iterator[Violation]:
    """Resources name their owner, cost centre, environment, class of data and end, with allowed values."""
    tags = _of(resource)
    found = {plain(key): key for key in tags}
    wanted = stack.settings.required_tags
    missing = [name for name in wanted if plain(name) not in found]
    if missing:
        yield Violation(f"it has no {', '.join(missing)}", "tags")
    for name in (name for name in wanted if name not in missing):
        key = found[plain(name)]
        if re.fullmatch(wanted[name], str(tags[key]), re.IGNORECASE) is None:
            yield Violation(f"{key} is {tags[key]!r}, which does not match {wanted[name]}", f"tags.{key}")


def plain(name: str) -> str:
    """Canonical name of a tag: `CostCentre`, `cost_center` and `cost-center` are equal."""
    return re.sub(r"[^a-z]", "", name.lower()).replace("centre", "center")


def _of(resource: Resource) -> Mapping[str, Any]:
    """A cluster of GKE has `resourceLabels`; what the provider adds is in effectiveLabels."""
    return resource.tags or resource.props.get("resourceLabels") or {}


@CATALOG.rule_around(
    "MLS-TAG-02",
    "medium",
    (NODE_GROUP, _LUSTRE, _OPEN_ZFS, *_DATABASES),
    "EKS, FSx and RDS create nodes, disks and backups: without tags they cannot be found or billed.",
    "Name the tags in tagSpecifications of the launch template; let backups copy the tags.",
    ("FSBP FSx.2",),
)
def tags_are_propagated(maker: Resource, stack: Stack) -> Iterator[Violation]:
    """Nodes and volumes of a pool, and backups, have the tags of their source."""
    if maker.kind == NODE_GROUP:
        yield from _nodes(maker, stack)
    elif maker.kind in _DATABASES:
        if maker.kind == _DATABASES[1] and "aurora" in str(maker.props.get("engine")):
            raise NotApplicableError("snapshots of Aurora belong to its cluster")
        if maker.props.get("copyTagsToSnapshot") is not True:
            yield Violation("snapshots have no tags", "copyTagsToSnapshot", "Set copyTagsToSnapshot.")
    else:
        yield from _backups(maker)


def _backups(system: Resource) -> Iterator[Violation]:
    kept, last = system.props.get("automaticBackupRetentionDays"), system.props.get("skipFinalBackup")
    if not kept and last is not False:
        raise NotApplicableError("it makes no backups")
    if system.props.get("copyTagsToBackups") is not True:
        yield Violation("backups have no tags", "copyTagsToBackups", "Set copyTagsToBackups.")


def _nodes(group: Resource, stack: Stack) -> Iterator[Violation]:
    """A pool's nodes and volumes.

    EKS gives the tags of a group to no node (EKS User Guide, tagging). A launch template does, and tags of
    the Auto Scaling group behind it, which reach nodes and not volumes (Auto Scaling User Guide, tagging).
    """
    wanted = {(key, value) for key, value in group.tags.items() if key != "Name"}
    if not wanted:
        raise NotApplicableError("it has no tags")
    given = _given(template_of(group, stack))
    if not wanted & given.get("instance", set()) and not wanted & _passed_on(group, stack):
        yield Violation("nodes have no tag of their pool", "tags")
    if not wanted & given.get("volume", set()):
        yield Violation("volumes of nodes have no tag of their pool", "tags")


_Tags = set[tuple[str, Any]]


def _given(template: Resource | None) -> dict[str, _Tags]:
    rows = (template.props.get("tagSpecifications") or ()) if template is not None else ()
    return {str(row.get("resourceType")): set((row.get("tags") or {}).items()) for row in rows}


def _passed_on(group: Resource, stack: Stack) -> _Tags:
    """Tags of the Auto Scaling group of a node group that are propagated to its machines."""
    found: _Tags = set()
    machines = _machines(group)
    for one in stack.all(_GROUP_TAG):
        behind = raw(one.props, "autoscalingGroupName")
        same = group.urn in one.references.get("autoscalingGroupName", ()) if is_unknown(behind) else (
            behind in machines
        )  # fmt: skip
        tag = one.props.get("tag") or {}
        if same and tag.get("key") and tag.get("propagateAtLaunch") is True:
            found.add((str(tag["key"]), tag.get("value")))
    return found


def _machines(group: Resource) -> set[str]:
    """Names of the Auto Scaling groups of a node group, as far as they are known."""
    rows = raw(group.props, "resources")
    if is_unknown(rows) or not isinstance(rows, list):
        return set()
    return {one.get("name") for row in rows for one in row.get("autoscalingGroups") or ()}
