"""Buckets: public access, encryption, versions and lifecycle."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.encryption_keys import is_own_key
from policies.rules.properties import each, raw
from policies.rules.storage.buckets import (
    GCS,
    LIFECYCLES,
    LOG_TARGET,
    S3,
    is_for,
    is_log_target,
    is_versioned,
    is_website,
    lifecycle,
    settings_of,
)
from policies.stack import Stack

_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_FIX_KEY = "Add a BucketServerSideEncryptionConfiguration with aws:kms and a key of yours."
_ACCOUNT = "aws:s3/accountPublicAccessBlock:AccountPublicAccessBlock"


@CATALOG.rule_around(
    "MLS-STO-01",
    "critical",
    (*S3, GCS),
    "Datasets and weights in a public bucket are copied unnoticed. New buckets of S3 are private, but"
    " only a block in the stack shows when one is opened by hand.",
    "Add a BucketPublicAccessBlock with all four settings; in Google Cloud, enforce publicAccessPrevention.",
    ("CKV_AWS_53", "CKV2_AWS_6", "CKV_GCP_114"),
)
def no_bucket_is_public(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Every bucket has a block of public access in the stack."""
    if bucket.kind == GCS:
        if bucket.props.get("publicAccessPrevention") != "enforced":
            yield Violation("nothing here prevents public access", "publicAccessPrevention")
        return
    blocks = [*settings_of(bucket, stack, "bucketPublicAccessBlock"), *stack.all(_ACCOUNT)]
    if not blocks:
        yield Violation("the stack sets no block of public access")
        return
    for name in _BLOCKS:
        if not any(block.props.get(name) is True for block in blocks):
            yield Violation(f"{name} is off", name, resource=blocks[0])


@CATALOG.rule_around(
    "MLS-STO-02",
    "high",
    (*S3, GCS),
    "Your own key controls access to the data, logs each use, and can be revoked.",
    "Encrypt the bucket with a key of KMS that the stack manages.",
    ("CKV_AWS_145",),
)
def buckets_have_an_own_key(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Every bucket is encrypted with a key of KMS that you own."""
    if bucket.kind == GCS:
        encryption = bucket.props.get("encryption") or {}
        if not is_own_key(bucket, "encryption", raw(encryption, "defaultKmsKeyName")):
            yield Violation("it is encrypted with a key of Google", "encryption.defaultKmsKeyName")
        return
    if is_log_target(bucket, stack):
        # S3 User Guide, "Enabling Amazon S3 server access logging": the target takes SSE-S3 only.
        raise NotApplicableError("access logs are not delivered to a bucket with a key of KMS")
    if is_website(bucket, stack):
        # S3 User Guide, "Website endpoints": only publicly readable objects; KMS has no anonymous access.
        raise NotApplicableError("a website has anonymous readers, which a KMS key does not allow")
    found = list(_encryption(bucket, stack))
    if not found:
        yield Violation("it is encrypted with a key of S3", fix=_FIX_KEY)
    for owner, path, default in found:
        if default.get("sseAlgorithm") not in ("aws:kms", "aws:kms:dsse"):
            message = f"it is encrypted with a key of S3 ({default.get('sseAlgorithm')})"
            yield Violation(message, f"{path}.sseAlgorithm", resource=owner)
        elif not is_own_key(owner, path.split(".")[0].split("[")[0], raw(default, "kmsMasterKeyId")):
            message = "it is encrypted with the key of AWS for S3 (aws/s3)"
            yield Violation(message, f"{path}.kmsMasterKeyId", resource=owner)


def _encryption(bucket: Resource, stack: Stack) -> Iterator[tuple[Resource, str, Any]]:
    """(resource, path, default encryption) of a bucket."""
    default = "applyServerSideEncryptionByDefault"
    own = settings_of(bucket, stack, "bucketServerSideEncryptionConfiguration")
    for one in own:
        yield from ((one, *found) for found in each(one.props, "rules", default))
    if not own:
        first = each(bucket.props, "serverSideEncryptionConfiguration", "rule", default)
        second = each(bucket.props, "serverSideEncryptionConfigurations", "rules", f"{default}s")
        yield from ((bucket, *found) for found in (*first, *second))


@CATALOG.rule_around(
    "MLS-STO-03",
    "medium",
    (*S3, GCS),
    "A job that writes to a wrong path destroys the only copy of a checkpoint; a version restores it.",
    "Enable versioning, and let old versions expire.",
    ("CKV_AWS_21", "CKV_GCP_78"),
)
def results_have_versions(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Buckets of checkpoints and artifacts keep versions of what is overwritten."""
    words = stack.settings.result_words
    if not is_for(bucket, words):
        raise NotApplicableError(f"neither its name nor its tags contain {', '.join(words)}")
    if bucket.kind == GCS and any(
        one.get("enabled") is True for _, one in each(bucket.props, "hierarchicalNamespace")
    ):
        raise NotApplicableError("a bucket with a hierarchical namespace cannot keep versions")
    if not is_versioned(bucket, stack):
        yield Violation("overwritten and deleted objects are lost", "versioning")


@CATALOG.rule_around(
    "MLS-STO-04",
    "high",
    (*S3, *LIFECYCLES, GCS),
    "Parts of uploads that a killed job never finished are billed and never listed; checkpoints of"
    " one large model are terabytes a day.",
    "Abort unfinished uploads in the whole bucket; let checkpoints and their old versions expire.",
    ("CKV2_AWS_61", "CKV_AWS_300"),
)
def buckets_clean_up(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Unfinished uploads are aborted, and checkpoints expire."""
    if bucket.kind in LIFECYCLES:
        # A bucket has one configuration (S3 API Reference, PutBucketLifecycleConfiguration), so one of a
        # bucket elsewhere is judged by itself.
        if stack.target(bucket, "bucket", *S3) is not None:
            raise NotApplicableError("it is judged with its bucket")
    elif bucket.kind != GCS and is_log_target(bucket, stack):
        raise NotApplicableError(LOG_TARGET)
    rules, most = lifecycle(bucket, stack), stack.settings.abort_uploads_after_days
    aborts = [rule.abort_days for rule in rules if rule.whole and rule.abort_days is not None]
    if not aborts:
        yield Violation("parts of unfinished uploads stay for ever", "lifecycleRules")
    elif min(aborts) > most:
        message = f"parts of unfinished uploads stay for {min(aborts)} days, more than {most}"
        yield Violation(message, "lifecycleRules")
    if is_for(bucket, stack.settings.checkpoint_words):
        if not any(rule.expires for rule in rules):
            yield Violation("checkpoints never expire", "lifecycleRules")
        elif (
            bucket.kind not in LIFECYCLES
            and is_versioned(bucket, stack)
            and not any(rule.ends_versions for rule in rules)
        ):
            message = "expired checkpoints stay for ever as old versions"
            yield Violation(message, "lifecycleRules")
