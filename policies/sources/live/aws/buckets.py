"""S3: buckets, each setting as a resource of its own.

Shapes: internal/service/s3/bucket*.go and internal/service/s3control/account_public_access_block.go of
terraform-provider-aws.
"""

from typing import Any

from policies.sources.live.mapping import Each, Joined, LiveKind, One, Reader, Shape, View, same
from policies.sources.live.queries import ACCOUNT, REGION, ApiQuery

_LIST = "s3.ListBuckets"


def _of_bucket(operation: str, key: str = "", right: str = "", unset: str = "") -> ApiQuery:
    return ApiQuery(
        "s3", operation, key, of=_LIST, by={"Bucket": "Name"}, unset=(unset,) if unset else (),
        right=f"s3:{right}" if right else "",
    )  # fmt: skip


QUERIES = (
    ApiQuery("s3", "ListBuckets", "Buckets", given={"BucketRegion": REGION}, right="s3:ListAllMyBuckets"),
    _of_bucket("GetBucketTagging", "TagSet", unset="NoSuchTagSet"),
    _of_bucket("GetBucketVersioning"),
    _of_bucket(
        "GetBucketEncryption", "ServerSideEncryptionConfiguration", "GetEncryptionConfiguration",
        "ServerSideEncryptionConfigurationNotFoundError",
    ),
    _of_bucket(
        "GetBucketLifecycleConfiguration", "", "GetLifecycleConfiguration", "NoSuchLifecycleConfiguration"
    ),
    _of_bucket("GetBucketLogging", "LoggingEnabled"),
    _of_bucket("GetBucketWebsite", unset="NoSuchWebsiteConfiguration"),
    _of_bucket(
        "GetPublicAccessBlock", "PublicAccessBlockConfiguration", "GetBucketPublicAccessBlock",
        "NoSuchPublicAccessBlockConfiguration",
    ),
    _of_bucket(
        "GetBucketReplication", "ReplicationConfiguration", "GetReplicationConfiguration",
        "ReplicationConfigurationNotFoundError",
    ),
    _of_bucket(
        "GetObjectLockConfiguration", "ObjectLockConfiguration", "GetBucketObjectLockConfiguration",
        "ObjectLockConfigurationNotFoundError",
    ),
    ApiQuery("s3", "ListDirectoryBuckets", "Buckets", right="s3express:ListAllMyDirectoryBuckets"),
    ApiQuery(
        "s3control", "GetPublicAccessBlock", "PublicAccessBlockConfiguration", given={"AccountId": ACCOUNT},
        unset=("NoSuchPublicAccessBlockConfiguration",), right="s3:GetAccountPublicAccessBlock",
    ),
)  # fmt: skip


def _setting(name: str, operation: str, shape: Shape, when: Reader = bool) -> LiveKind:
    token = f"{name[0].upper()}{name[1:]}"
    return LiveKind(
        f"aws:s3/{name}:{token}",
        f"s3.{operation}",
        "{asked.Bucket}",
        {"bucket": "asked.Bucket", **shape},
        owner="{asked.Bucket}",
        when=when,
    )


_BLOCKS = same("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


def _filter(view: View) -> Any:
    """The filter of a lifecycle rule; empty for the whole bucket."""
    chosen = view.at("Filter")
    if not isinstance(chosen, dict):
        return None
    both = chosen.get("And")
    wanted = both if isinstance(both, dict) else chosen
    tags = wanted.get("Tags") or ([wanted["Tag"]] if wanted.get("Tag") else [])
    made = {
        "prefix": wanted.get("Prefix") or None,
        "objectSizeGreaterThan": wanted.get("ObjectSizeGreaterThan"),
        "objectSizeLessThan": wanted.get("ObjectSizeLessThan"),
        "tags": {one["Key"]: one["Value"] for one in tags} or None,
    }
    if both is None and len(tags) == 1:
        made["tag"] = {"key": tags[0]["Key"], "value": tags[0]["Value"]}
        del made["tags"]
    plain = {key: value for key, value in made.items() if value is not None}
    return {"and": plain} if both is not None else plain


_LIFECYCLE: Shape = {
    "id": "ID",
    "status": "Status",
    "prefix": lambda view: view.at("Prefix") or None,
    "filter": _filter,
    "abortIncompleteMultipartUpload": One(
        "AbortIncompleteMultipartUpload", {"daysAfterInitiation": "DaysAfterInitiation"}
    ),
    "expiration": One("Expiration", same("Days", "Date", "ExpiredObjectDeleteMarker")),
    "noncurrentVersionExpiration": One(
        "NoncurrentVersionExpiration",
        same("NoncurrentDays", "NewerNoncurrentVersions"),
    ),
    "transitions": Each("Transitions", same("Days", "Date", "StorageClass")),
}


def _locked(view: View) -> Any:
    found = view.at("lock")
    return isinstance(found, dict) and found.get("ObjectLockEnabled") == "Enabled"


KINDS = (
    LiveKind(
        "aws:s3/bucket:Bucket",
        _LIST,
        "{Name}",
        {"bucket": "Name", "objectLockEnabled": _locked},
        arn="arn:{partition}:s3:::{Name}",
        tags="tagging",
        joined={
            "tagging": Joined("s3.GetBucketTagging", {"Bucket": "Name"}, listed=True),
            "lock": Joined("s3.GetObjectLockConfiguration", {"Bucket": "Name"}),
        },
        when=lambda view: view.at("BucketRegion") in (None, view.at("region")),
        program_only=("forceDestroy",),
    ),
    _setting(
        "bucketVersioning",
        "GetBucketVersioning",
        {"versioningConfiguration": lambda view: {"status": view.at("Status")}},
        when=lambda view: bool(view.at("Status")),  # no status for a bucket that never had versions
    ),
    _setting(
        "bucketServerSideEncryptionConfiguration",
        "GetBucketEncryption",
        {
            "rules": Each(
                "Rules",
                {
                    "applyServerSideEncryptionByDefault": One(
                        "ApplyServerSideEncryptionByDefault",
                        {"kmsMasterKeyId": "KMSMasterKeyID", "sseAlgorithm": "SSEAlgorithm"},
                    ),
                    "bucketKeyEnabled": "BucketKeyEnabled",
                },
            )
        },
    ),
    _setting(
        "bucketLifecycleConfiguration",
        "GetBucketLifecycleConfiguration",
        {"rules": Each("Rules", _LIFECYCLE)},
    ),
    _setting(
        "bucketLogging",
        "GetBucketLogging",
        same("TargetBucket", "TargetPrefix"),
        when=lambda view: bool(view.at("TargetBucket")),
    ),
    _setting(
        "bucketWebsiteConfiguration",
        "GetBucketWebsite",
        {
            "indexDocument": One("IndexDocument", {"suffix": "Suffix"}),
            "errorDocument": One("ErrorDocument", {"key": "Key"}),
            "redirectAllRequestsTo": One("RedirectAllRequestsTo", same("HostName", "Protocol")),
        },
    ),
    _setting("bucketPublicAccessBlock", "GetPublicAccessBlock", _BLOCKS),
    _setting(
        "bucketReplicationConfig",
        "GetBucketReplication",
        {
            "role": "Role",
            "rules": Each(
                "Rules",
                {
                    "id": "ID",
                    "status": "Status",
                    "destination": One("Destination", same("Bucket", "Account")),
                },
            ),
        },
    ),
    LiveKind(
        "aws:s3/directoryBucket:DirectoryBucket",
        "s3.ListDirectoryBuckets",
        "{Name}",
        {"bucket": "Name"},
        arn="arn:{partition}:s3express:{region}:{account}:bucket/{Name}",
        when=lambda view: str(view.at("Name")).endswith("--x-s3"),
        program_only=("forceDestroy",),
    ),
    LiveKind(
        "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock",
        "s3control.GetPublicAccessBlock",
        "{account}",
        {"accountId": "account", **_BLOCKS},
        regionless=True,
    ),
)
