"""Buckets and their settings, made by the operations that the provider uses for them."""

from collections.abc import Mapping

from tests.policies.sources.live.remade.account import Maker, Props, Remade
from tests.policies.sources.live.remade.modelled import reported


def _bucket(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    locked = bool(one.get("objectLockEnabled"))
    remade.call("s3.CreateBucket", {}, Bucket=one["bucket"], ObjectLockEnabledForBucket=locked)
    if tags:
        rows = [{"Key": key, "Value": value} for key, value in tags.items()]
        remade.call("s3.PutBucketTagging", {}, Bucket=one["bucket"], Tagging={"TagSet": rows})
    return ""


def _policy(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    remade.call("s3.PutBucketPolicy", {}, Bucket=one["bucket"], Policy=one["policy"])
    return ""


def _logging(remade: Remade, one: Props, tags: dict[str, str]) -> str:
    """The emulation refuses a target without grants to the log delivery group, as S3 does of old."""
    group = 'uri="http://acs.amazonaws.com/groups/s3/LogDelivery"'
    given = {"Bucket": one["targetBucket"], "GrantWrite": group, "GrantReadACP": group}
    remade.call("s3.PutBucketAcl", {}, **given)
    status = {"LoggingEnabled": reported("s3", "LoggingEnabled", one)}
    remade.call("s3.PutBucketLogging", {}, Bucket=one["bucket"], BucketLoggingStatus=status)
    return ""


def _setting(operation: str, member: str, shape: str, below: str = "") -> Maker:
    """What stands in the properties, or in one of them."""

    def make(remade: Remade, one: Props, tags: dict[str, str]) -> str:
        given = reported("s3", shape, one[below] if below else one)
        remade.call(f"s3.{operation}", {}, Bucket=one["bucket"], **{member: given})
        return str(one["bucket"])

    return make


def _token(name: str) -> str:
    return f"aws:s3/{name}:{name[0].upper()}{name[1:]}"


_BLOCKS, _RULES = "PublicAccessBlockConfiguration", "ServerSideEncryptionConfiguration"
MAKERS: Mapping[str, Maker] = {
    _token("bucket"): _bucket,
    _token("bucketPolicy"): _policy,
    _token("bucketVersioning"): _setting(
        "PutBucketVersioning", "VersioningConfiguration", "VersioningConfiguration", "versioningConfiguration"
    ),
    _token("bucketPublicAccessBlock"): _setting("PutPublicAccessBlock", _BLOCKS, _BLOCKS),
    _token("bucketLifecycleConfiguration"): _setting(
        "PutBucketLifecycleConfiguration", "LifecycleConfiguration", "BucketLifecycleConfiguration"
    ),
    _token("bucketServerSideEncryptionConfiguration"): _setting("PutBucketEncryption", _RULES, _RULES),
    _token("bucketLogging"): _logging,
    _token("bucketReplicationConfig"): _setting(
        "PutBucketReplication", "ReplicationConfiguration", "ReplicationConfiguration"
    ),
}
