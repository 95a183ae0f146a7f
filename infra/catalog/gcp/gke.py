"""Kubernetes versions of GKE: minor versions with their support, and the versions of each channel."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from infra.catalog.errors import UnknownFactError
from infra.catalog.gcp.model import GkeMinor, ReleaseChannel
from infra.errors import Problem

Support = Literal["standard", "extended"]
_MAINTENANCE_HOURS: Final = 48
"""In 32 days. Source: GKE documentation, Maintenance windows and exclusions."""
_WHOLE_WEEKS: Final = 4
"""In 32 days."""


@dataclass(frozen=True)
class Gke:
    """Minor versions by "1.N", oldest first, and release channels by name."""

    minors: Mapping[str, GkeMinor]
    channels: Mapping[str, ReleaseChannel]

    def support(self, version: str, on: datetime.date) -> Support:
        """The support of a version on a day; after standard support only the channel `extended` offers it.

        Raises UnknownFactError for a version without a row.
        """
        row = self.minors.get(version)
        if row is None:
            raise UnknownFactError("Kubernetes version", version, self.minors)
        return "extended" if on >= row.standard_support_ends else "standard"

    def version_problems(self, path: str, version: str, channel_path: str, channel: str) -> Iterator[Problem]:
        """The version is a minor version of GKE, and the channel offers it."""
        if version not in self.minors:
            rule, fix = "not a version GKE offers", f"Use one of {', '.join(self.minors)}."
            yield Problem(path, version, rule, fix, code="kubernetes-version-not-offered")
            return
        row = self.channels[channel]
        if not number(row.oldest) <= number(version) <= number(row.newest):
            rule = f"the channel {channel} offers {row.oldest} to {row.newest}"
            others = [one.name for one in self.channels.values() if number(version) <= number(one.newest)]
            fix = f"Use one of these, or a channel that offers it: {', '.join(others) or 'none'}."
            yield Problem(path, version, rule, fix, against=channel_path, code="version-not-in-channel")


def number(version: str) -> int:
    """The N of a minor version 1.N."""
    return int(version.split(".")[1])


def maintenance_problems(
    days_path: str, days: Sequence[str], hours_path: str, hours: int
) -> Iterator[Problem]:
    """Days are named once, and windows add up to the hours that GKE requires."""
    if len(set(days)) != len(days):
        rule, fix = "a day is named twice", "Name each day once."
        yield Problem(days_path, list(days), rule, fix, code="day-named-twice")
    times = len(set(days)) * _WHOLE_WEEKS
    if times * hours < _MAINTENANCE_HOURS:
        rule = (
            f"{times} windows of {hours} hours in 32 days are {times * hours} hours, and GKE needs"
            f" {_MAINTENANCE_HOURS}"
        )
        needed = -(-_MAINTENANCE_HOURS // times) if times else _MAINTENANCE_HOURS
        fix = f"Set {needed} hours, or name more days."
        yield Problem(hours_path, hours, rule, fix, against=days_path, code="maintenance-too-short")
