"""Tags of every resource type."""

from collections.abc import Iterator

from rehearsal.aws.rules.book import BOOK
from rehearsal.aws.table import TABLE
from rehearsal.core.model import Properties
from rehearsal.core.rules.model import Violation

_SOURCE = "botocore 1.44.5 eks/2017-11-01 CreatePodIdentityAssociationRequest (tags: basic restrictions)"
_KEY, _VALUE = 128, 256
# An object has at most ten tags, and Auto Scaling groups have another format of tags.
_OTHERS = ("aws:s3/bucketObject:BucketObject", "aws:s3/bucketObjectv2:BucketObjectv2", "aws:autoscaling/")
_TAGGED = tuple(token for token in TABLE.rows if not token.startswith(_OTHERS))


def _tags(inputs: Properties) -> dict[str, object]:
    tags = inputs.get("tags")
    return tags if isinstance(tags, dict) else {}


@BOOK.rule("AWS-TAG-002", *_TAGGED, source=_SOURCE)
def tag_key(inputs: Properties) -> Iterator[Violation]:
    """A tag's key has 1 to 128 characters."""
    for key in _tags(inputs):
        if not 1 <= len(key) <= _KEY:
            yield Violation("tags", f"the key {key[:40]!r} has {len(key)} characters, not 1 to {_KEY}")


@BOOK.rule("AWS-TAG-003", *_TAGGED, source=_SOURCE)
def tag_value(inputs: Properties) -> Iterator[Violation]:
    """A tag's value has at most 256 characters."""
    for key, value in _tags(inputs).items():
        if isinstance(value, str) and len(value) > _VALUE:
            yield Violation(f"tags.{key}", f"the value has {len(value)} characters, but at most {_VALUE}")


@BOOK.rule("AWS-TAG-004", *_TAGGED, source=_SOURCE)
def tag_prefix(inputs: Properties) -> Iterator[Violation]:
    """Keys that begin with aws: belong to AWS."""
    for key in _tags(inputs):
        if key.lower().startswith("aws:"):
            yield Violation("tags", f"the key {key} begins with aws:, which only AWS may use", "Rename it.")
