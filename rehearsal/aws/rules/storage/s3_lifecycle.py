"""Lifecycle rules of buckets."""

from collections.abc import Iterator, Mapping

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import given, is_set, items, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import known
from rehearsal.core.rules.model import Violation

_LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_RULE = "botocore 1.44.5 s3/2006-03-01 LifecycleRule"
_EXPIRATION = "botocore 1.44.5 s3/2006-03-01 LifecycleExpiration"
_DIRECTORY = "botocore 1.44.5 s3/2006-03-01 LifecycleRule (what is for general purpose buckets only)"
_GENERAL = ("transitions", "noncurrentVersionExpiration", "noncurrentVersionTransitions")


@BOOK.rule("AWS-S3-010", _LIFECYCLE, source="botocore 1.44.5 s3/2006-03-01 LifecycleRule (ID)")
def rule_ids_differ(inputs: Properties) -> Iterator[Violation]:
    """The ids of a bucket's lifecycle rules differ."""
    taken: set[object] = set()
    for path, rule in items(inputs, "rules"):
        if known(rule.get("id")) and rule["id"] in taken:
            yield Violation(f"{path}.id", f"rule ids must be unique, and {rule['id']} is taken")
        taken.add(rule.get("id"))


@BOOK.rule("AWS-S3-012", _LIFECYCLE, source=_EXPIRATION)
def delete_marker_stands_alone(inputs: Properties) -> Iterator[Violation]:
    """Expiring delete markers excludes days and date."""
    for path, rule in items(inputs, "rules"):
        expiration = rule.get("expiration")
        if not isinstance(expiration, Mapping) or expiration.get("expiredObjectDeleteMarker") is not True:
            continue
        for name in given(expiration, "days", "date"):
            if expiration[name] != 0:
                yield Violation(f"{path}.expiration.{name}", "it excludes expiredObjectDeleteMarker")


@BOOK.rule("AWS-S3-014", _LIFECYCLE, source=_DIRECTORY)
def directory_buckets_only_expire(inputs: Properties) -> Iterator[Violation]:
    """Directory buckets expire objects and uploads, but have no versions and no other storage classes."""
    if not (text(inputs.get("bucket")) or "").endswith("--x-s3"):
        return
    for path, rule in items(inputs, "rules"):
        for name in _GENERAL:
            if is_set(rule.get(name)):
                yield Violation(f"{path}.{name}", "directory buckets do not support it", "Leave it out.")


@BOOK.rule("AWS-S3-015", _LIFECYCLE, source=_RULE)
def directory_buckets_have_no_tag_filters(inputs: Properties) -> Iterator[Violation]:
    """Lifecycle rules of directory buckets do not filter by tag."""
    if not (text(inputs.get("bucket")) or "").endswith("--x-s3"):
        return
    for path, rule in items(inputs, "rules"):
        condition = rule.get("filter")
        if isinstance(condition, Mapping) and condition.get("tag") is not None:
            yield Violation(f"{path}.filter.tag", "directory buckets do not support it", "Use a prefix.")
