"""Buckets: encryption, versions and lifecycle."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.encryption_keys import is_own_key
from policies.rules.properties import each, raw
from policies.rules.storage.buckets import (
    GCS,
    S3,
    LifecycleRule,
    check_elsewhere,
    configured,
    enables_versions,
    is_for,
    is_versioned,
    is_website,
    kinds_of,
    lifecycle,
    settings_of,
)
from policies.rules.storage.log_targets import LOG_TARGET, is_log_target
from policies.stack import Stack

_ENCRYPTION = kinds_of("bucketServerSideEncryptionConfiguration")
_VERSIONING, _LIFECYCLE = map(kinds_of, ("bucketVersioning", "bucketLifecycleConfiguration"))
_STATUS = "versioningConfiguration.status"
_DEFAULT = "applyServerSideEncryptionByDefault"
_FIX_KEY = "Add a BucketServerSideEncryptionConfiguration with aws:kms and a key of yours."


@CATALOG.rule_around(
    "MLS-STO-02",
    "high",
    (*S3, GCS, *_ENCRYPTION),
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
    if bucket.kind in _ENCRYPTION:
        check_elsewhere(bucket, stack)
        yield from _of_keys([(bucket, *one) for one in each(bucket.props, "rules", _DEFAULT)])
        return
    if is_website(bucket, stack):
        # S3 User Guide, "Website endpoints": only publicly readable objects; KMS has no anonymous access.
        raise NotApplicableError("a website has anonymous readers, which a KMS key does not allow")
    found = list(_of_keys(list(_encryption(bucket, stack))))
    if found and is_log_target(bucket, stack):
        # S3 User Guide, "Enabling Amazon S3 server access logging": the target takes SSE-S3 only.
        raise NotApplicableError("access logs are not delivered to a bucket with a key of KMS")
    yield from found


def _of_keys(found: list[tuple[Resource, str, Any]]) -> Iterator[Violation]:
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
    own = settings_of(bucket, stack, "bucketServerSideEncryptionConfiguration")
    for one in own:
        yield from ((one, *found) for found in each(one.props, "rules", _DEFAULT))
    if not own:
        first = each(bucket.props, "serverSideEncryptionConfiguration", "rule", _DEFAULT)
        second = each(bucket.props, "serverSideEncryptionConfigurations", "rules", f"{_DEFAULT}s")
        yield from ((bucket, *found) for found in (*first, *second))


@CATALOG.rule_around(
    "MLS-STO-03",
    "medium",
    (*S3, GCS, *_VERSIONING),
    "A job that writes to a wrong path destroys the only copy of a checkpoint; a version restores it.",
    "Enable versioning, and let old versions expire.",
    ("CKV_AWS_21", "CKV_GCP_78"),
)
def results_have_versions(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Buckets of checkpoints and artifacts keep versions of what is overwritten."""
    words, apart = stack.settings.result_words, bucket.kind in _VERSIONING
    if apart:
        check_elsewhere(bucket, stack)
    if not is_for(bucket, words):
        raise NotApplicableError(f"neither its name nor its tags contain {', '.join(words)}")
    if bucket.kind == GCS and any(
        one.get("enabled") is True for _, one in each(bucket.props, "hierarchicalNamespace")
    ):
        raise NotApplicableError("a bucket with a hierarchical namespace cannot keep versions")
    if not (enables_versions(bucket) if apart else is_versioned(bucket, stack)):
        yield Violation("overwritten and deleted objects are lost", _STATUS if apart else "versioning")


@CATALOG.rule_around(
    "MLS-STO-04",
    "high",
    (*S3, GCS, *_LIFECYCLE),
    "Parts of uploads that a killed job never finished are billed and never listed; checkpoints of"
    " one large model are terabytes a day.",
    "Abort unfinished uploads in the whole bucket; let checkpoints and their old versions expire.",
    ("CKV2_AWS_61", "CKV_AWS_300"),
)
def buckets_clean_up(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Unfinished uploads are aborted, and checkpoints expire."""
    if bucket.kind in _LIFECYCLE:
        check_elsewhere(bucket, stack)
        yield from _rests(bucket, configured(bucket), stack, "rules")
        return
    found = list(_rests(bucket, lifecycle(bucket, stack), stack))
    if found and bucket.kind != GCS and is_log_target(bucket, stack):
        raise NotApplicableError(LOG_TARGET)
    yield from found


def _rests(
    bucket: Resource, rules: list[LifecycleRule], stack: Stack, path: str = "lifecycleRules"
) -> Iterator[Violation]:
    """Violations by the rules of a bucket, or of a setting, where versions are not known."""
    most, known = stack.settings.abort_uploads_after_days, bucket.kind not in _LIFECYCLE
    aborts = [rule.abort_days for rule in rules if rule.whole and rule.abort_days is not None]
    if not aborts:
        yield Violation("parts of unfinished uploads stay for ever", path)
    elif min(aborts) > most:
        message = f"parts of unfinished uploads stay for {min(aborts)} days, more than {most}"
        yield Violation(message, path)
    if is_for(bucket, stack.settings.checkpoint_words):
        if not any(rule.expires for rule in rules):
            yield Violation("checkpoints never expire", path)
        elif known and is_versioned(bucket, stack) and not any(rule.ends_versions for rule in rules):
            message = "expired checkpoints stay for ever as old versions"
            yield Violation(message, path)
