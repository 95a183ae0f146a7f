"""The database behind a tracking server."""

from collections.abc import Iterator

from policies.catalog import CATALOG, Violation
from policies.resource import Resource, UndeterminedError
from policies.rules.environment import is_production
from policies.rules.properties import each, is_true
from policies.rules.storage.backups import is_planned
from policies.stack import Stack

_CLUSTER, _MEMBER = "aws:rds/cluster:Cluster", "aws:rds/clusterInstance:ClusterInstance"
_INSTANCE, _SQL = "aws:rds/instance:Instance", "gcp:sql/databaseInstance:DatabaseInstance"
_REDSHIFT, _WORKGROUP = "aws:redshift/cluster:Cluster", "aws:redshiftserverless/workgroup:Workgroup"
# From this version of the provider on, clusters of Redshift are private and encrypted by default
# (documentation of aws.redshift.Cluster in pulumi-aws 6.83.0 and 7.51.1).
_SAFE_BY_DEFAULT = 7


@CATALOG.rule_around(
    "MLS-TRK-02",
    "high",
    (_CLUSTER, _MEMBER, _INSTANCE, _SQL, _REDSHIFT, _WORKGROUP),
    "The database links models to code and data; without it, no result can be explained.",
    "Encrypt it, give it no public address, keep backups; in production, enable deletion protection.",
    ("CKV_AWS_16", "CKV_AWS_17", "CKV_AWS_133", "CKV_AWS_139"),
)
def databases_are_protected(database: Resource, stack: Stack) -> Iterator[Violation]:
    """Databases are encrypted, private and backed up, and in production protected from deletion."""
    props = database.props
    if database.kind == _SQL:
        yield from _of_google(database, stack)
        return
    if database.kind in (_REDSHIFT, _WORKGROUP):
        yield from _of_redshift(database)
        return
    if props.get("publiclyAccessible") is True:
        yield Violation("it has a public address", "publiclyAccessible")
    if database.kind == _MEMBER:  # the rest is set in its cluster
        return
    copied = props.get("replicateSourceDb") or props.get("replicationSourceIdentifier")
    # Aurora Serverless v1 is always encrypted.
    if props.get("storageEncrypted") is not True and props.get("engineMode") != "serverless":
        if props.get("snapshotIdentifier") or copied:
            raise UndeterminedError("it is not known whether its source is encrypted")
        yield Violation("it is not encrypted", "storageEncrypted")
    days = props.get("backupRetentionPeriod")
    # RDS keeps them for a day by default (RDS API Reference, CreateDBInstance, CreateDBCluster).
    if days is not None and days < 1 and not copied and not is_planned(database, stack):
        yield Violation("it has no backups", "backupRetentionPeriod")
    locked = props.get("deletionProtection") is True or database.protect
    if not locked and is_production(database, stack):
        yield Violation("neither protect nor RDS keeps it from being deleted", "deletionProtection")


def _of_redshift(warehouse: Resource) -> Iterator[Violation]:
    """Redshift Serverless encrypts every namespace and is private by default."""
    props, major = warehouse.props, warehouse.plugin.partition(".")[0]
    older = warehouse.kind == _REDSHIFT and major.isdecimal() and int(major) < _SAFE_BY_DEFAULT
    if is_true(props.get("publiclyAccessible", older)):
        yield Violation("it has a public address", "publiclyAccessible")
    if warehouse.kind == _WORKGROUP:
        return
    if not is_true(props.get("encrypted", not older)):
        if props.get("snapshotIdentifier") or props.get("snapshotArn"):
            raise UndeterminedError("it is not known whether its source is encrypted")
        yield Violation("it is not encrypted", "encrypted")
    if props.get("automatedSnapshotRetentionPeriod") == 0:
        yield Violation("it has no backups", "automatedSnapshotRetentionPeriod")


def _of_google(database: Resource, stack: Stack) -> Iterator[Violation]:
    """Cloud SQL encrypts every instance; a public address is the default, backups are not."""
    props = database.props
    public = [one.get("ipv4Enabled") for _, one in each(props, "settings", "ipConfiguration")]
    if not public or public[0] is not False:
        yield Violation("it has a public address", "settings.ipConfiguration.ipv4Enabled")
    backups = [one.get("enabled") for _, one in each(props, "settings", "backupConfiguration")]
    if True not in backups and not props.get("masterInstanceName"):
        yield Violation("it has no backups", "settings.backupConfiguration.enabled")
    locked = props.get("deletionProtection") is not False or any(
        one.get("deletionProtectionEnabled") is True for _, one in each(props, "settings")
    )
    if not locked and not database.protect and is_production(database, stack):
        yield Violation("nothing keeps it from being deleted", "deletionProtection")
