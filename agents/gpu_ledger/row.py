"""A line of a book. Pure; runs in a pod."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

Key = tuple[str, str, str, str]
"""Day, project, pool, resource."""


@dataclass(frozen=True)
class Row:
    """Device-seconds of one day, project, pool and resource."""

    day: str
    project: str
    pool: str
    resource: str
    held_s: int
    """Admitted: nobody else could have the devices."""
    running_s: int
    """Of these, with all pods ready; nodes boot and images are pulled before."""
    measured_s: int = 0
    """Of these, in minutes with a figure of what the device did."""
    used_s: int = 0
    """Of the measured ones, those in which it worked."""

    @property
    def idle_s(self) -> int:
        """Of the measured ones, those in which it did nothing."""
        return self.measured_s - self.used_s

    @property
    def unknown_s(self) -> int:
        """Held ones of which nobody knows what the device did."""
        return max(0, self.held_s - self.measured_s)


def merged(rows: Iterable[Row]) -> list[Row]:
    """One row for each day, project, pool and resource, in order.

    Hours of a month and their figures may lie in two books: attempts that go on when it ends are booked
    later.
    """
    found: dict[Key, Row] = {}
    for row in rows:
        key = row.day, row.project, row.pool, row.resource
        before = found.get(key)
        found[key] = (
            row
            if before is None
            else replace(
                row,
                held_s=before.held_s + row.held_s,
                running_s=before.running_s + row.running_s,
                measured_s=before.measured_s + row.measured_s,
                used_s=before.used_s + row.used_s,
            )
        )
    return [found[key] for key in sorted(found)]
