"""A line of a book. Pure; runs in a pod."""

from collections.abc import Iterable
from dataclasses import dataclass

Key = tuple[str, str, str, str]
"""Day, project, pool, resource."""
Uncertain = tuple[str, str, str, int]
"""Day, pool, resource, device-seconds."""


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
    def key(self) -> Key:
        """Day, project, pool and resource, which no other row has."""
        return self.day, self.project, self.pool, self.resource

    @property
    def amounts(self) -> tuple[int, int, int, int]:
        """Its device-seconds, in the order of its fields."""
        return self.held_s, self.running_s, self.measured_s, self.used_s

    @property
    def idle_s(self) -> int:
        """Measured seconds in which the device did nothing."""
        return self.measured_s - self.used_s

    @property
    def unknown_s(self) -> int:
        """Held seconds without utilization data."""
        return max(0, self.held_s - self.measured_s)


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The sums of two pairs."""
    return one[0] + other[0], one[1] + other[1]


def merged(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """One row for each day, project, pool and resource, in order.

    Hours of a day and their figures may lie in two books: some are booked after the day is archived.
    """
    found: dict[Key, tuple[int, int, int, int]] = {}
    for row in rows:
        a, b, c, d = found.get(row.key, (0, 0, 0, 0))
        found[row.key] = (a + row.held_s, b + row.running_s, c + row.measured_s, d + row.used_s)
    return [LedgerRow(*key, *amounts) for key, amounts in sorted(found.items())]
