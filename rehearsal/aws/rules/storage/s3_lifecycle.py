"""Lifecycle rules of buckets."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.rules.reading import given, is_set, items, number, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import at, known
from rehearsal.core.rules.model import Violation

_LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
_RULE = "botocore 1.44.5 s3/2006-03-01 LifecycleRule"
_EXPIRATION = "botocore 1.44.5 s3/2006-03-01 LifecycleExpiration"
_DIRECTORY = "botocore 1.44.5 s3/2006-03-01 LifecycleRule (what is for general purpose buckets only)"
_BUCKET = "aws:s3/bucket:Bucket"
_DAYS = "Amazon S3 User Guide, lifecycle-transition-general-considerations (constraints, minimum days)"
# Days that an object is stored before it can be in a class, and in it before it is in a colder one.
_LEAST = {"STANDARD_IA": 30, "ONEZONE_IA": 30}
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


def _transitions(inputs: Properties) -> Iterator[tuple[str, Mapping[str, Any], list[tuple[str, str, float]]]]:
    """(path, rule, transitions: path, class, days) of every rule of both types."""
    for group in ("rules", "lifecycleRules"):
        for path, rule in items(inputs, group):
            found = []
            for place, one in items(dict(rule), "transitions"):
                days, kind = number(one.get("days")), text(one.get("storageClass"))
                if days is not None and kind is not None:
                    found.append((f"{path}.{place}.days", kind, days))
            yield path, rule, found


@BOOK.rule("AWS-S3-016", _LIFECYCLE, _BUCKET, source=_DAYS)
def days_of_the_class(inputs: Properties) -> Iterator[Violation]:
    """Objects move to the IA classes after 30 days or more, and 30 days later to a colder class."""
    for _, _, found in _transitions(inputs):
        warm = [days for _, kind, days in found if kind in _LEAST]
        for path, kind, days in found:
            least = _LEAST.get(kind, 0)
            if days < least:
                message = f"'Days' in Transition action must be greater than or equal to {least} for class"
                yield Violation(
                    path, f"{message} '{kind}', not {days:.0f}", f"Give {least}.", "InvalidArgument"
                )
            elif kind not in _LEAST and warm and min(warm) <= days < min(warm) + 30:
                message = f"'Days' for {kind} must be 30 more than {min(warm):.0f}, those of the warmer class"
                yield Violation(path, message, f"Give {min(warm) + 30:.0f}.", "InvalidArgument")


@BOOK.rule(
    "AWS-S3-017", _LIFECYCLE, _BUCKET, source="botocore 1.44.5 s3/2006-03-01 LifecycleExpiration (Days)"
)
def expires_after_transitions(inputs: Properties) -> Iterator[Violation]:
    """Objects expire after their transitions."""
    for path, rule, found in _transitions(inputs):
        days = number(at(rule, "expiration.days"))
        latest = max((one for _, _, one in found), default=None)
        if days and latest is not None and days <= latest:
            message = "'Days' in the Expiration action must be greater than 'Days' in the Transition action"
            yield Violation(
                f"{path}.expiration.days",
                f"{message}: {days:.0f}",
                f"Give more than {latest:.0f}.",
                "InvalidArgument",
            )
