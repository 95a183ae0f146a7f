"""Deletion protection of production."""

from collections.abc import Iterator, Mapping

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.environment import is_production
from policies.rules.storage.buckets import GCS, S3
from policies.stack import Stack

_RDS = ("aws:rds/cluster:Cluster", "aws:rds/instance:Instance")
_UNPROTECTED = "aws:fsx/lustreFileSystem:LustreFileSystem", "aws:efs/fileSystem:FileSystem"
_BUCKETS = (*S3, GCS)
# Kinds with a deletion protection of the cloud: its property, and its default.
_LOCKS: Mapping[str, tuple[str, bool]] = {
    **dict.fromkeys(_RDS, ("deletionProtection", False)),
    "aws:eks/cluster:Cluster": ("deletionProtection", False),
    "gcp:container/cluster:Cluster": ("deletionProtection", True),
    "gcp:sql/databaseInstance:DatabaseInstance": ("deletionProtection", True),
    "gcp:filestore/instance:Instance": ("deletionProtectionEnabled", False),
}
_GCP_LUSTRE = "gcp:lustre/instance:Instance"


@CATALOG.rule_around(
    "MLS-STO-10",
    "critical",
    (*_BUCKETS, *_LOCKS, *_UNPROTECTED, _GCP_LUSTRE),
    "A wrong stack name in one command must not delete the results of a year of training.",
    "Set protect or the deletion protection of the cloud; unset forceDestroy and skipFinalSnapshot.",
)
def production_is_hard_to_delete(kept: Resource, stack: Stack) -> Iterator[Violation]:
    """Data and clusters of production are protected from deletion."""
    if not is_production(kept, stack):
        raise NotApplicableError("it is not of production")
    if kept.kind in _BUCKETS:
        # Without it, a bucket with objects cannot be deleted.
        if kept.props.get("forceDestroy") is True:
            yield Violation("it is deleted with everything in it", "forceDestroy")
        return
    replica = kept.props.get("replicateSourceDb") or kept.props.get("replicationSourceIdentifier")
    if kept.kind in _RDS and kept.props.get("skipFinalSnapshot") is True and not replica:
        yield Violation("no snapshot is taken at its deletion", "skipFinalSnapshot")
    if kept.protect:
        return
    if kept.kind not in _LOCKS:
        yield Violation("nothing keeps it from being deleted", fix="Set protect in its resource options.")
        return
    name, usual = _LOCKS[kept.kind]
    locked = kept.props.get(name)
    if not (usual if locked is None else locked is True):
        yield Violation("neither protect nor the cloud keeps it from being deleted", name)
