"""An S3 bucket with the settings of all buckets: private, versioned, encrypted with our key, TLS only."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pulumi
import pulumi_aws as aws
from pulumi_aws.s3 import (
    BucketLifecycleConfigurationRuleArgsDict,
    BucketLifecycleConfigurationRuleTransitionArgsDict,
)

from components.base import Component, Options
from components.ordering import after
from infra.catalog.aws.storage_classes import COLD, COOL

# Parts of an aborted upload are invisible in listings but billed; a week is ample for a retry.
ABORTED_UPLOAD_DAYS = 7


class AwsBucketArgs(TypedDict):
    """Lifecycle of objects, and their key."""

    kms_key_arn: pulumi.Input[str]
    """ARN of the customer-managed key; other keys and other kinds of encryption are denied."""
    log_bucket: NotRequired[pulumi.Input[str]]
    """Bucket of S3's access log. Default: none."""
    noncurrent_days: int
    """Days an overwritten or deleted version can still be restored."""
    expire_days: NotRequired[int]
    """Days after which a current object expires. Default: never."""
    cool_after_days: NotRequired[int]
    """Days after which a current object is moved to Standard-IA, at least 30. Default: never."""
    cold_after_days: NotRequired[int]
    """Days after which it is moved to Glacier Instant Retrieval. Default: never."""
    intelligent_tiering: NotRequired[bool]
    """Let S3 move objects between access tiers by their use (no retrieval delay or fee). Default: no."""
    object_lock: NotRequired[bool]
    """Allow retention and legal holds on single objects; can only be chosen at creation. Default: no."""
    unnamed_key_roles: NotRequired[pulumi.Input[Sequence[str]]]
    """ARNs (may hold `*`) of roles whose writes with `aws:kms` and no key are accepted, for a service that
    cannot name one. S3 encrypts such an object with the account's key `aws/s3`. Default: none."""
    force_destroy: NotRequired[bool]
    """Delete the bucket even with objects in it. Default: no, `destroy` then stops at a bucket in use."""


class AwsBucket(Component):
    """A hardened bucket. Its outputs resolve only once encryption, versioning and policy are in place."""

    bucket: pulumi.Output[str]
    """Name of the bucket."""
    arn: pulumi.Output[str]
    """ARN of the bucket."""

    def __init__(self, name: str, args: AwsBucketArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        bucket = aws.s3.Bucket(
            name,
            force_destroy=args.get("force_destroy", False),
            object_lock_enabled=args.get("object_lock", False),
            opts=self.child(),
        )
        versioning = aws.s3.BucketVersioning(
            f"{name}-versioning",
            bucket=bucket.bucket,
            versioning_configuration={"status": "Enabled"},
            opts=self.child(),
        )
        # Rules about non-current versions have no effect before versioning is on.
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=bucket.bucket,
            rules=lifecycle_rules(args),
            opts=self.child(pulumi.ResourceOptions(depends_on=[versioning])),
        )
        if "log_bucket" in args:
            aws.s3.BucketLogging(
                f"{name}-access-log",
                bucket=bucket.bucket,
                target_bucket=args["log_bucket"],
                target_prefix=f"{name}/",
                opts=self.child(),
            )
        encryption = self._encrypt(name, bucket, args["kms_key_arn"])
        document = bucket_policy(bucket.arn, args["kms_key_arn"], args.get("unnamed_key_roles"))
        policy = restrict(self, name, bucket, document)
        guards = [policy, encryption, versioning]
        self.bucket = after(bucket.bucket, guards)
        self.arn = after(bucket.arn, guards)
        self.register_declared()

    def _encrypt(
        self, name: str, bucket: aws.s3.Bucket, kms_key_arn: pulumi.Input[str]
    ) -> aws.s3.BucketServerSideEncryptionConfiguration:
        # The bucket key cuts calls to KMS (and their price) by sharing one data key for many objects.
        return aws.s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption",
            bucket=bucket.bucket,
            rules=[
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": kms_key_arn,
                    },
                    "blocked_encryption_types": ["SSE-C"],
                    "bucket_key_enabled": True,
                }
            ],
            opts=self.child(),
        )


def lifecycle_rules(args: AwsBucketArgs) -> list[BucketLifecycleConfigurationRuleArgsDict]:
    """The bucket's lifecycle: old versions and aborted uploads are always deleted, the rest as in `args`."""
    versions: BucketLifecycleConfigurationRuleArgsDict = {
        "id": "old-versions-and-aborted-uploads",
        "status": "Enabled",
        "filter": {},
        "noncurrent_version_expiration": {"noncurrent_days": args["noncurrent_days"]},
        "abort_incomplete_multipart_upload": {"days_after_initiation": ABORTED_UPLOAD_DAYS},
    }
    if "expire_days" in args:
        versions["expiration"] = {"days": args["expire_days"]}
    else:
        # Without an age limit S3 needs a rule to delete markers that hide nothing any more.
        versions["expiration"] = {"expired_object_delete_marker": True}
    moves: list[BucketLifecycleConfigurationRuleTransitionArgsDict] = []
    if "cool_after_days" in args:
        moves.append({"days": args["cool_after_days"], "storage_class": COOL.name})
    if "cold_after_days" in args:
        moves.append({"days": args["cold_after_days"], "storage_class": COLD.name})
    if moves:
        versions["transitions"] = moves
    if not args.get("intelligent_tiering", False):
        return [versions]
    return [
        versions,
        {
            "id": "tier-by-use",
            "status": "Enabled",
            "filter": {},
            "transitions": [{"days": 0, "storage_class": "INTELLIGENT_TIERING"}],
        },
    ]


def bucket_policy(
    bucket_arn: pulumi.Input[str],
    kms_key_arn: pulumi.Input[str],
    unnamed_key_roles: pulumi.Input[Sequence[str]] | None = None,
) -> Mapping[str, pulumi.Input[object]]:
    """Deny to every principal: plain HTTP, and writes with another key.

    A write without encryption gets the bucket's default, which is the right key. One with encryption must
    name this key by ARN: the negated comparison also matches a request with an algorithm and without a key,
    for which S3 would use its own managed key. From `unnamed_key_roles` that request alone is accepted, too.
    """
    objects = pulumi.Output.concat(bucket_arn, "/*")
    given, named = "s3:x-amz-server-side-encryption", "s3:x-amz-server-side-encryption-aws-kms-key-id"
    denied = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": objects}
    another = {"StringNotEquals": {named: kms_key_arn}}
    unnamed: dict[str, object] = {"Null": {given: "false"}, **another}
    ours = {"Sid": "OurKeyOnly", **denied, "Condition": unnamed}
    if unnamed_key_roles is None:
        return {"Version": "2012-10-17", "Statement": [tls_only([bucket_arn, objects]), ours]}
    # Of an assumed role, the key is the ARN of the role (IAM user guide, global condition context keys).
    others = {**ours, "Condition": {**unnamed, "ArnNotLike": {"aws:PrincipalArn": unnamed_key_roles}}}
    theirs = {"Sid": "NoOtherKey", **denied, "Condition": {"Null": {named: "false"}, **another}}
    kms = {
        "Sid": "KmsOnly",
        **denied,
        "Condition": {"Null": {given: "false"}, "StringNotEquals": {given: "aws:kms"}},
    }
    statements = [tls_only([bucket_arn, objects]), others, theirs, kms]
    return {"Version": "2012-10-17", "Statement": statements}


def tls_only(resources: Sequence[pulumi.Input[str]]) -> Mapping[str, object]:
    """The statement that denies plain HTTP to a bucket and its objects, to all principals."""
    return {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": resources,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def restrict(
    component: Component, name: str, bucket: aws.s3.Bucket, policy: pulumi.Input[Mapping[str, object]]
) -> aws.s3.BucketPolicy:
    """Close a bucket to the public and to other owners, then set its policy."""
    public_access = aws.s3.BucketPublicAccessBlock(
        f"{name}-public-access",
        bucket=bucket.bucket,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=component.child(),
    )
    ownership = aws.s3.BucketOwnershipControls(
        f"{name}-ownership",
        bucket=bucket.bucket,
        rule={"object_ownership": "BucketOwnerEnforced"},
        opts=component.child(),
    )
    # S3 rejects two such changes of one bucket at the same time ("conflicting conditional operation").
    return aws.s3.BucketPolicy(
        f"{name}-policy",
        bucket=bucket.bucket,
        policy=pulumi.Output.json_dumps(policy),
        opts=component.child(pulumi.ResourceOptions(depends_on=[public_access, ownership])),
    )
