"""Access logs of training data."""

from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.properties import each
from policies.rules.storage.buckets import GCS, S3, is_for, settings_of
from policies.stack import Stack

_TRAIL = "aws:cloudtrail/trail:Trail"
_AUDIT = (
    "gcp:projects/iAMAuditConfig:IAMAuditConfig",
    "gcp:folder/iamAuditConfig:IamAuditConfig",
    "gcp:organizations/iamAuditConfig:IamAuditConfig",
)
_OBJECTS, _READS = "AWS::S3::Object", ("All", "ReadOnly")
_STORAGE = ("allServices", "storage.googleapis.com")


@CATALOG.rule_around(
    "MLS-STO-13",
    "medium",
    (*S3, GCS),
    "Without logs, reads of a dataset cannot be traced: neither cloud logs them by default.",
    "Add access logs to the bucket, or data events to a trail; on Google Cloud, DATA_READ audit logs.",
    (
        "KICS a8fc2180-b3ac-4c93-bd0d-a55b974e4b07",
        "S3 User Guide, cloudtrail-logging-s3-info: CloudTrail does not log data events by default",
    ),
)
def reads_of_datasets_are_logged(bucket: Resource, stack: Stack) -> Iterator[Violation]:
    """Reads of datasets are logged."""
    if not is_for(bucket, stack.settings.dataset_words):
        raise NotApplicableError("it holds no datasets")
    logged = _on_google(bucket, stack) if bucket.kind == GCS else _on_amazon(bucket, stack)
    if not logged:
        yield Violation("reads of it are not logged", "logging")


def _on_amazon(bucket: Resource, stack: Stack) -> bool:
    inline = (one for key in ("logging", "loggings") for _, one in each(bucket.props, key))
    if settings_of(bucket, stack, "bucketLogging") or any(one.get("targetBucket") for one in inline):
        return True
    return any(_follows(trail, bucket) for trail in stack.all(_TRAIL))


def _follows(trail: Resource, bucket: Resource) -> bool:
    if trail.props.get("enableLogging") is False:
        return False
    for _, selector in trail.items("eventSelectors"):
        if (selector.get("readWriteType") or "All") in _READS:
            for one in selector.get("dataResources") or ():
                if one and one.get("type") == _OBJECTS and _named(one.get("values") or (), bucket):
                    return True
    return any(_chooses(selector, bucket) for _, selector in trail.items("advancedEventSelectors"))


def _named(values: Any, bucket: Resource) -> bool:
    own = f"{bucket.computed('arn')}/"
    # `arn:aws:s3` and `arn:aws:s3:::` are every bucket.
    return any(own.startswith(str(value)) or str(value) == own.rstrip("/") for value in values)


def _chooses(selector: Any, bucket: Resource) -> bool:
    fields = {one.get("field"): one for one in selector.get("fieldSelectors") or () if one}
    types = (fields.get("resources.type") or {}).get("equals") or ()
    if _OBJECTS not in types or "true" not in ((fields.get("readOnly") or {}).get("equals") or ("true",)):
        return False
    place = fields.get("resources.ARN")
    return place is None or _named([*(place.get("startsWiths") or ()), *(place.get("equals") or ())], bucket)


def _on_google(bucket: Resource, stack: Stack) -> bool:
    if any(one.get("logBucket") for _, one in bucket.items("logging")):
        return True
    reads = [
        one
        for config in stack.all(*_AUDIT)
        if config.props.get("service") in _STORAGE
        for _, one in config.items("auditLogConfigs")
        if one.get("logType") == "DATA_READ"
    ]
    # Configurations of one service are joined, with the members that each exempts (IAM API, AuditConfig).
    return bool(reads) and not any(one.get("exemptedMembers") for one in reads)
