"""A line of a book. Pure; runs in a pod."""

from dataclasses import dataclass

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
