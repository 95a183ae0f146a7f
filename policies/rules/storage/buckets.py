"""Settings of buckets: inline or separate resources, in both generations of the types."""

from dataclasses import dataclass
from typing import Any

from policies.catalog import NotApplicableError
from policies.resource import Resource
from policies.rules.properties import each
from policies.stack import Stack

S3 = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
GCS, DIRECTORY = "gcp:storage/bucket:Bucket", "aws:s3/directoryBucket:DirectoryBucket"
_PURPOSE = ("name", "purpose", "content")


def kinds_of(name: str) -> tuple[str, str]:
    """The types with a name such as `bucketVersioning`, also with V2."""
    head = f"{name[0].upper()}{name[1:]}"
    return f"aws:s3/{name}:{head}", f"aws:s3/{name}V2:{head}V2"


def settings_of(bucket: Resource, stack: Stack, name: str) -> list[Resource]:
    """The resources of a type such as `bucketVersioning`, also with V2, of a bucket."""
    return [user for kind in kinds_of(name) for user in stack.users(bucket, kind, "bucket")]


def check_elsewhere(setting: Resource, stack: Stack) -> None:
    """Raise NotApplicableError if the bucket of a setting is in the stack: it is judged with all of them.

    Raises UndeterminedError if that is not known.
    """
    if stack.target(setting, "bucket", *S3, DIRECTORY, GCS) is not None:
        raise NotApplicableError("its bucket is judged")


def is_website(bucket: Resource, stack: Stack) -> bool:
    """Return whether S3 serves it as a website, to anonymous readers."""
    own = bool(settings_of(bucket, stack, "bucketWebsiteConfiguration"))
    return own or any(True for key in ("website", "websites") for _ in each(bucket.props, key))


def is_for(bucket: Resource, words: tuple[str, ...]) -> bool:
    """Return whether the name or a purpose tag of a bucket contains one of the words."""

    def matches(text: Any) -> bool:
        return any(word in str(text).lower() for word in words)

    key = "name" if bucket.kind == GCS else "bucket"
    return (
        matches(bucket.name)
        or matches(bucket.props.get(key) or "")
        or any(matches(bucket.tags[key]) for key in bucket.tags if str(key).lower() in _PURPOSE)
    )


def is_versioned(bucket: Resource, stack: Stack) -> bool:
    """Return whether overwritten objects are kept."""
    if bucket.kind == GCS:
        return any(one.get("enabled") is True for _, one in each(bucket.props, "versioning"))
    if bucket.props.get("objectLockEnabled") is True:  # a lock requires versions, and S3 enables them
        return True
    own = settings_of(bucket, stack, "bucketVersioning")
    if own:
        return any(map(enables_versions, own))
    return any(
        found.get("enabled") is True
        for key in ("versioning", "versionings")
        for _, found in each(bucket.props, key)
    )


def enables_versions(setting: Resource) -> bool:
    """Return whether a BucketVersioning enables versions."""
    return any(one.get("status") == "Enabled" for _, one in each(setting.props, "versioningConfiguration"))


@dataclass(frozen=True)
class LifecycleRule:
    """An enabled lifecycle rule, from any format."""

    whole: bool
    """Applies to every object."""
    abort_days: int | None
    expires: bool
    """Deletes current objects, or turns them into versions."""
    ends_versions: bool
    """Deletes noncurrent versions."""


def lifecycle(bucket: Resource, stack: Stack) -> list[LifecycleRule]:
    """The enabled rules of a bucket."""
    if bucket.kind == GCS:
        return [_of_gcs(rule) for _, rule in each(bucket.props, "lifecycleRules")]
    own = settings_of(bucket, stack, "bucketLifecycleConfiguration")
    if own:
        return [rule for one in own for rule in configured(one)]
    inline = [rule for _, rule in each(bucket.props, "lifecycleRules")]
    return [_of_inline(rule) for rule in inline if rule.get("enabled") is True]


def configured(setting: Resource) -> list[LifecycleRule]:
    """The enabled rules of a BucketLifecycleConfiguration, which has all of those of its bucket."""
    rules = (rule for _, rule in each(setting.props, "rules"))
    return [_of_configuration(rule) for rule in rules if rule.get("status") == "Enabled"]


def _of_configuration(rule: Any) -> LifecycleRule:
    chosen = rule.get("filter") or {}
    narrow = [key for key, value in chosen.items() if value not in (None, "", 0, {}, [])]
    aborts = [one.get("daysAfterInitiation") for _, one in each(rule, "abortIncompleteMultipartUpload")]
    return LifecycleRule(
        whole=not narrow and not rule.get("prefix"),
        abort_days=aborts[0] if aborts else None,
        expires=any(_ends(one) for _, one in each(rule, "expiration")),
        ends_versions=any(True for _ in each(rule, "noncurrentVersionExpiration")),
    )


def _of_inline(rule: Any) -> LifecycleRule:
    return LifecycleRule(
        whole=not rule.get("prefix") and not rule.get("tags"),
        abort_days=rule.get("abortIncompleteMultipartUploadDays") or None,
        expires=any(_ends(one) for key in ("expiration", "expirations") for _, one in each(rule, key)),
        ends_versions=any(
            True
            for key in ("noncurrentVersionExpiration", "noncurrentVersionExpirations")
            for _ in each(rule, key)
        ),
    )


def _ends(expiration: Any) -> bool:
    return bool(expiration.get("days") or expiration.get("date"))


def _of_gcs(rule: Any) -> LifecycleRule:
    action, when = rule.get("action") or {}, rule.get("condition") or {}
    deletes = action.get("type") == "Delete"
    state = when.get("withState") or "ANY"
    # These conditions match only noncurrent versions.
    of_versions = any(
        when.get(key) for key in ("numNewerVersions", "daysSinceNoncurrentTime", "noncurrentTimeBefore")
    )
    return LifecycleRule(
        whole=not when.get("matchesPrefixes") and not when.get("matchesSuffixes"),
        abort_days=when.get("age") if action.get("type") == "AbortIncompleteMultipartUpload" else None,
        expires=deletes and state != "ARCHIVED" and not of_versions,
        ends_versions=deletes and state != "LIVE",
    )
