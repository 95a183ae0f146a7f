"""How long clouds take to create resources, by type token of the resource: the rows of every cloud."""

from collections.abc import Mapping
from typing import TypeAlias

from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as gcp
from infra.catalog.rows import Duration

Durations: TypeAlias = Mapping[str, tuple[Duration, ...]]


def durations() -> Durations:
    """The known durations, for one kind of a type's resources each; a type that no source gives is absent."""
    return {**aws.durations, **gcp.durations}
