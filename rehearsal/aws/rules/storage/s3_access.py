"""Access to buckets: what a new bucket refuses by default, and the actions of its policy."""

import fnmatch
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import document, many, principals, text
from rehearsal.core.model import Properties, Record
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation

_POLICY, _ACL = "aws:s3/bucketPolicy:BucketPolicy", "aws:s3/bucketAcl:BucketAcl"
_BLOCK = "s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
_CONTROLS = "s3/bucketOwnershipControls:BucketOwnershipControls"
_ENFORCED = "BucketOwnerEnforced"
# Keys of conditions that narrow how a request is sent, and not who sends it.
_TRANSPORT = {"aws:securetransport", "s3:tlsversion"}
_ACTIONS = Path(__file__).with_name("s3_actions.toml")


def _made_here(site: AwsContext, value: object) -> Record | None:
    """The bucket of a program: new, so with what new buckets have. An older one may have other settings."""
    bucket = site.find(value, "s3/bucket:Bucket")
    return bucket if bucket is not None and bucket.urn and not site.preview else None


def _statements(inputs: Properties) -> list[dict[str, Any]]:
    policy = document(inputs.get("policy"))
    listed = many(policy.get("Statement")) if isinstance(policy, dict) else []
    return [one for one in listed if isinstance(one, dict)]


@BOOK.rule_around(
    "AWS-S3-007",
    _POLICY,
    source="torchbox/buckup pull request 18; aws-samples/aws-cdk-examples issue 919 (new buckets block "
    "public policies since April 2023); hashicorp/terraform-provider-aws "
    "internal/service/s3/bucket_policy.go (no retry)",
)
def public_policy_is_blocked(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A bucket takes a policy for everyone only where its public access block lets it: a new one does not."""
    bucket = _made_here(site, inputs.get("bucket"))
    if bucket is None or not _is_public(_statements(inputs)):
        return
    blocks = list(site.users(bucket, _BLOCK))
    if not blocks or any(one.outputs.get("blockPublicPolicy") is True for one in blocks):
        yield Violation(
            "policy",
            "Access Denied: the policy is public, and the bucket has BlockPublicPolicy",
            "Name principals, or give the bucket a BucketPublicAccessBlock with blockPublicPolicy = false, "
            "on which the policy depends.",
            "AccessDenied",
        )


def _is_public(statements: list[dict[str, Any]]) -> bool:
    """Return whether a policy allows something to everyone without conditions and denials."""
    denials = [one for one in statements if one.get("Effect") != "Allow"]
    if not all(_about_transport(one.get("Condition")) for one in denials):
        return False
    everyone = (one for one in statements if one.get("Effect") == "Allow" and "Principal" in one)
    return any("*" in principals(one, "AWS") and not one.get("Condition") for one in everyone)


def _about_transport(condition: object) -> bool:
    rows = list(condition.values()) if isinstance(condition, dict) else []
    keys = {str(key).lower() for row in rows if isinstance(row, dict) for key in row}
    return bool(keys) and keys <= _TRANSPORT


@BOOK.rule_around(
    "AWS-S3-008",
    _ACL,
    source="hashicorp/terraform-provider-aws issue 34079 (text; acl private); "
    "internal/service/s3/bucket_acl.go (no retry)",
)
def acl_needs_ownership_controls(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A bucket takes an ACL only with ownership controls other than BucketOwnerEnforced: a new one has it."""
    bucket, acl = _made_here(site, inputs.get("bucket")), text(inputs.get("acl"))
    if bucket is None or acl is None:
        return
    controls = list(site.users(bucket, _CONTROLS))
    owned = [value for one in controls for _, value in each(one.outputs, "rule.objectOwnership")]
    if not controls or _ENFORCED in owned:
        yield Violation(
            "acl",
            "The bucket does not allow ACLs",
            "Leave the ACL out: a new bucket is private. Or give the bucket BucketOwnershipControls with "
            "BucketOwnerPreferred, on which the ACL depends.",
            "AccessControlListNotSupported",
        )


@BOOK.rule(
    "AWS-S3-009",
    _POLICY,
    source="wandb/terraform-aws-wandb issue 156; aws-amplify/docs issue 7799; versity/versitygw "
    "issue 645 (text); Service Authorization Reference, Amazon S3 (resource types)",
)
def action_has_its_resource(inputs: Properties) -> Iterator[Violation]:
    """Actions on objects need objects among the resources of their statement, those on buckets the bucket."""
    for index, one in enumerate(_statements(inputs)):
        resources = many(one.get("Resource"))
        if (
            one.get("Effect") != "Allow"
            or not resources
            or not all(isinstance(arn, str) for arn in resources)
        ):
            continue
        paths = [arn.rpartition(":")[2] for arn in resources]
        # A star without a slash before it is about the bucket, and about objects below.
        objects = any("/" in path or "*" in path for path in paths)
        buckets = any("/" not in path for path in paths)
        for action in many(one.get("Action")):
            kinds = _about(str(action))
            if kinds and not ("object" in kinds and objects) and not ("bucket" in kinds and buckets):
                right = "BUCKET-ARN/*" if "object" in kinds else "BUCKET-ARN"
                yield Violation(
                    "policy",
                    f"statement {index}: Action does not apply to any resource(s) in statement: {action}",
                    f"It is about {right}: add it to the resources.",
                    "MalformedPolicy",
                )


def _about(action: str) -> set[str]:
    """Resource types of an action, maybe with wildcards: object, bucket; none where they are unknown."""
    service, _, pattern = action.lower().partition(":")
    if service != "s3":
        return set()
    return {kind for kind, names in _named().items() if fnmatch.filter(names, pattern)}


@functools.cache
def _named() -> dict[str, list[str]]:
    data = tomllib.loads(_ACTIONS.read_text(encoding="utf-8"))
    return {kind: [name.lower() for name in data[kind]] for kind in ("object", "bucket")}
