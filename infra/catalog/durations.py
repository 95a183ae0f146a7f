"""How long clouds take to create resources, by type token of the resource: the rows of every cloud."""

from collections.abc import Mapping

from infra.catalog.aws import facts as aws
from infra.catalog.aws.model import Duration


def durations() -> Mapping[str, Duration]:
    """The known durations; a type that no source gives is absent."""
    return aws.durations
