"""Creation times of resources on every cloud, by Pulumi type token."""

from collections.abc import Mapping
from typing import TypeAlias

from infra.catalog.aws import facts as aws
from infra.catalog.gcp import facts as gcp
from infra.catalog.rows import Duration

Durations: TypeAlias = Mapping[str, tuple[Duration, ...]]


def durations() -> Durations:
    """Known creation times, one row per kind of a type's resources; types without a source are absent."""
    return {**aws.durations, **gcp.durations}
