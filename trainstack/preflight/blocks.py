"""Whether the times of a block in the spec are those that the cloud knows."""

from collections.abc import Iterator
from datetime import UTC, datetime

from infra.stackspec.layouts import CapacityBlock


def differing_times(bought: CapacityBlock, starts: datetime | None, ends: datetime | None) -> Iterator[str]:
    """What the cloud says otherwise than the spec, of the times that both know."""
    for word, said, known in (("begins", bought.starts, starts), ("ends", bought.ends, ends)):
        if said is not None and known is not None and datetime.fromisoformat(said) != known:
            yield f"{word} at {known.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}, not at {said}"
