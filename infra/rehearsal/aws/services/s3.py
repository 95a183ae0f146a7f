"""Buckets. Source: Amazon S3 User Guide (bucket naming rules, lifecycle), S3 API error codes."""

import re
from collections.abc import Iterator

from infra.rehearsal.aws.services.identity import admits_principals, checks_policy
from infra.rehearsal.aws.site import Hooks, Site, known, refuse
from infra.rehearsal.model import CheckFailure, Properties

_BUCKET = re.compile(
    r"(?!\d+\.\d+\.\d+\.\d+$)(?!xn--|sthree-|amzn-s3-demo-)[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]"
)
_FORBIDDEN_END = ("-s3alias", "--ol-s3", ".mrap", "--table-s3")
_LIFECYCLE_ACTIONS = (
    "abortIncompleteMultipartUpload",
    "expiration",
    "noncurrentVersionExpiration",
    "noncurrentVersionTransitions",
    "transitions",
)


def _check_name(inputs: Properties) -> Iterator[CheckFailure]:
    name = inputs.get("bucket")
    if isinstance(name, str) and (
        not _BUCKET.fullmatch(name) or ".." in name or name.endswith(_FORBIDDEN_END)
    ):
        yield CheckFailure(
            "bucket",
            f"InvalidBucketName: {name} is not valid (3-63 lower-case letters, digits, dots and dashes, "
            "beginning and ending with a letter or digit)",
        )


def _check_lifecycle(inputs: Properties) -> Iterator[CheckFailure]:
    ids = [rule.get("id") for rule in inputs.get("rules") or []]
    if len(set(map(str, ids))) != len(ids):
        yield CheckFailure("rules", "InvalidArgument: rule ids must be unique")
    for index, rule in enumerate(inputs.get("rules") or []):
        if rule.get("status") not in ("Enabled", "Disabled") and known(rule.get("status")):
            yield CheckFailure(f"rules[{index}].status", "MalformedXML: must be Enabled or Disabled")
        if not any(rule.get(name) for name in _LIFECYCLE_ACTIONS):
            yield CheckFailure(
                f"rules[{index}]", f"InvalidRequest: a rule needs one of {', '.join(_LIFECYCLE_ACTIONS)}"
            )


def _check_versioning(inputs: Properties) -> Iterator[CheckFailure]:
    settings = inputs.get("versioningConfiguration")
    status = settings.get("status") if isinstance(settings, dict) else None
    if known(status) and status not in ("Enabled", "Suspended", "Disabled"):
        yield CheckFailure(
            "versioningConfiguration.status", f"must be Enabled, Suspended or Disabled, not {status}"
        )


def _admit_policy(site: Site, inputs: Properties) -> None:
    admits_principals("policy")(site, inputs)
    bucket, document = inputs.get("bucket"), inputs.get("policy")
    if isinstance(document, str) and isinstance(bucket, str) and f":::{bucket}" not in document:
        raise refuse(
            "MalformedPolicy",
            "Policy has invalid resource",
            "policy",
            f"Its resources must be arn:aws:s3:::{bucket} and below.",
        )


HOOKS = {
    "s3/bucket:Bucket": Hooks(check=_check_name),
    "s3/bucketPolicy:BucketPolicy": Hooks(
        check=checks_policy("policy", principals=True), admit=_admit_policy
    ),
    "s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Hooks(check=_check_lifecycle),
    "s3/bucketVersioning:BucketVersioning": Hooks(check=_check_versioning),
}
