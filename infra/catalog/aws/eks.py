"""Kubernetes versions of EKS with their support dates, and add-ons."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from infra.catalog.aws.model import EksAddon, KubernetesVersion, ZoneWithoutEks
from infra.catalog.errors import UnknownFactError

Support = Literal["standard", "extended", "ended", "unknown"]


@dataclass(frozen=True)
class Eks:
    """Kubernetes versions by "1.N", oldest first, add-ons by name, and zones without EKS by id."""

    versions: Mapping[str, KubernetesVersion]
    addons: Mapping[str, EksAddon]
    zones_without: Mapping[str, ZoneWithoutEks]

    def support(self, version: str, on: datetime.date) -> Support:
        """The support that a version has on a day: extended costs six times as much per cluster-hour.

        "unknown" when the row lacks the date. Raises UnknownFactError for a version without a row, unless it
        is older than a version whose support has ended: support ends in the order of versions.
        """
        row = self.versions.get(version)
        if row is None:
            oldest = next(iter(self.versions))
            if _is_older(version, oldest) and self.support(oldest, on) == "ended":
                return "ended"
            raise UnknownFactError("Kubernetes version", version, self.versions)
        if row.extended_support_ends and on >= row.extended_support_ends:
            return "ended"
        if row.standard_support_ends is None:
            return "unknown"
        return "extended" if on >= row.standard_support_ends else "standard"

    def addon(self, name: str) -> EksAddon:
        """The add-on of that name. Raises UnknownFactError with the nearest names."""
        try:
            return self.addons[name]
        except KeyError:
            raise UnknownFactError("EKS add-on", name, self.addons) from None


def _is_older(version: str, than: str) -> bool:
    """Return whether a version such as 1.9 is older; False for a text that is no version."""
    parts = [one.split(".") for one in (version, than)]
    if not all(len(one) == 2 and all(map(str.isdigit, one)) for one in parts):
        return False
    first, second = ([int(number) for number in one] for one in parts)
    return first < second
