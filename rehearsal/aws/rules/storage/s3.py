"""Buckets: names, versioning, encryption."""

import re
from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK, AwsContext
from rehearsal.aws.rules.reading import document, items, many, text
from rehearsal.core.model import Properties
from rehearsal.core.properties import each
from rehearsal.core.rules.model import Violation

_BUCKET = "aws:s3/bucket:Bucket"
_VERSIONING = "aws:s3/bucketVersioning:BucketVersioning"
_ENCRYPTION = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
_NAMES = "Amazon S3 User Guide, directory-bucket-naming-rules and bucketnamingrules"
_NAME = re.compile(r"(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_STARTS = ("xn--", "sthree-", "amzn-s3-demo-")
_ENDS = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


@BOOK.rule("AWS-S3-001", _BUCKET, source=_NAMES)
def bucket_name(inputs: Properties) -> Iterator[Violation]:
    """A bucket's name has 3 to 63 lower-case letters, digits, dots and dashes."""
    name = text(inputs.get("bucket"))
    if name is not None and (not _NAME.fullmatch(name) or ".." in name):
        yield Violation(
            "bucket",
            f"{name} is not valid",
            "Use 3 to 63 lower-case letters, digits, dots and dashes, a letter or digit at both ends.",
            "InvalidBucketName",
        )


@BOOK.rule("AWS-S3-002", _BUCKET, source=_NAMES)
def reserved_bucket_names(inputs: Properties) -> Iterator[Violation]:
    """Some beginnings and ends of bucket names belong to AWS."""
    name = text(inputs.get("bucket")) or ""
    if name.startswith(_STARTS) or name.endswith(_ENDS):
        yield Violation(
            "bucket",
            f"{name} begins or ends as only AWS may use",
            "Choose another name.",
            "InvalidBucketName",
        )


@BOOK.rule_around("AWS-S3-004", _VERSIONING, source="pulumi-aws 7.51.1 docstring of aws.s3.BucketVersioning")
def versioning_cannot_be_undone(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """A versioned bucket can be suspended, but not be made unversioned."""
    before = site.current("s3/bucketVersioning:BucketVersioning")
    path = "versioningConfiguration.status"
    status = next((value for _, value in each(inputs, path)), None)
    old = next((value for _, value in each(before.outputs, path)), None) if before else None
    if status == "Disabled" and old in ("Enabled", "Suspended"):
        yield Violation(path, "versioning cannot go back to Disabled", "Use Suspended.", "InvalidBucketState")


@BOOK.rule("AWS-S3-005", _ENCRYPTION, source="botocore 1.44.5 s3/2006-03-01 ServerSideEncryptionByDefault")
def key_needs_kms(inputs: Properties) -> Iterator[Violation]:
    """A KMS key goes with the algorithms of KMS only."""
    for path, rule in items(inputs, "rules"):
        chosen = rule.get("applyServerSideEncryptionByDefault")
        algorithm = chosen.get("sseAlgorithm") if isinstance(chosen, dict) else None
        if isinstance(chosen, dict) and chosen.get("kmsMasterKeyId") is not None and algorithm == "AES256":
            yield Violation(
                f"{path}.applyServerSideEncryptionByDefault.kmsMasterKeyId",
                "AES256 takes no KMS key",
                "Use aws:kms.",
            )


# Prefix of the name; directory buckets have a service, region and account in theirs (Service
# Authorization Reference, Amazon S3 Express: arn:PARTITION:s3express:REGION:ACCOUNT:bucket/NAME).
_BUCKET_ARN = re.compile(r"arn:[^:]+:(?:s3:::|s3express:[^:]*:[^:]*:bucket/)")


@BOOK.rule_around(
    "AWS-S3-006",
    _POLICY,
    source="hashicorp/terraform issue 23570; noobaa/noobaa-core issue 10058 (what AWS says to *)",
)
def policy_is_about_its_bucket(inputs: Properties, site: AwsContext) -> Iterator[Violation]:
    """The resources of a bucket's policy are the bucket and its objects."""
    bucket, policy = text(inputs.get("bucket")), document(inputs.get("policy"))
    for statement in many(policy.get("Statement")) if bucket and isinstance(policy, dict) else []:
        for resource in many(statement.get("Resource")) if isinstance(statement, dict) else []:
            about = _BUCKET_ARN.sub("", str(resource)).partition("/")[0]
            if resource == "*" or not _matches(about, str(bucket)):
                yield Violation(
                    "policy",
                    "Policy has invalid resource",
                    f"Its resources must be arn:aws:s3:::{bucket} and below, not {resource}.",
                    "MalformedPolicy",
                )
                return


def _matches(pattern: str, bucket: str) -> bool:
    regex = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(regex, bucket) is not None
