"""How long clouds take to create resources, by type token of the resource: the rows of every cloud."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from infra.catalog.aws import facts as aws
from infra.catalog.duration import Duration, read_durations

Durations: TypeAlias = Mapping[str, tuple[Duration, ...]]
_GOOGLE = Path(__file__).parent / "gcp/tables/durations.toml"


@functools.cache
def durations() -> Durations:
    """The known durations, for one kind of a type's resources each; a type that no source gives is absent."""
    return {**aws.durations, **read_durations(_GOOGLE)}
