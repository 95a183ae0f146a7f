"""A line of a book. Pure; runs in a pod."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

Key = tuple[str, str, str, str]
"""Day, project, pool, resource."""


@dataclass(frozen=True)
class LedgerRow:
    """Device-seconds of one day, project, pool and resource."""

    day: str
    project: str
    pool: str
    resource: str
    held_s: int
    """Admitted: the devices were not available to others."""
    running_s: int
    """Of these, with all pods ready; before, nodes boot and images are pulled."""
    measured_s: int = 0
    """Of these, in minutes with a figure of the device's activity."""
    used_s: int = 0
    """Of the measured ones, those in which it worked."""

    @property
    def idle_s(self) -> int:
        """Measured seconds in which the device did nothing."""
        return self.measured_s - self.used_s

    @property
    def unknown_s(self) -> int:
        """Held seconds without utilization data."""
        return max(0, self.held_s - self.measured_s)


def merged(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """One row for each day, project, pool and resource, in order.

    Hours of a month and their figures may lie in two books: attempts that go on when it ends are booked
    later.
    """
    found: dict[Key, LedgerRow] = {}
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
