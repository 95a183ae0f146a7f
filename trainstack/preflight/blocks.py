"""Comparison of the times of a block in the spec with those of the cloud."""

from collections.abc import Iterator
from datetime import UTC, datetime

from infra.stackspec.purchases import CapacityBlock


def differing_times(bought: CapacityBlock, starts: datetime | None, ends: datetime | None) -> Iterator[str]:
    """The times of the cloud that differ from the spec, where both have one."""
    for verb, wanted, known in (("begins", bought.starts, starts), ("ends", bought.ends, ends)):
        if wanted is not None and known is not None and datetime.fromisoformat(wanted) != known:
            yield f"{verb} at {known.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}, not at {wanted}"
