"""The versions that GKE offers, by release channel, from what its API says of a place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.releases.newest import order


@dataclass(frozen=True)
class Channel:
    """A release channel of GKE in one region."""

    default: str
    """The version that new clusters get."""
    versions: tuple[str, ...]
    """All that clusters may have."""


def channels(config: Mapping[str, Any]) -> dict[str, Channel]:
    """By name in lower case, of a ServerConfig (discovery document container v1)."""
    return {
        str(row["channel"]).lower(): Channel(
            str(row.get("defaultVersion", "")), tuple(str(one) for one in row.get("validVersions") or ())
        )
        for row in config.get("channels") or ()
    }


def newest(versions: Sequence[str], minor: str) -> str | None:
    """The newest version of a minor one, such as `1.35.2-gke.1269000` of 1.35; None where there is none."""
    return max((one for one in versions if one.startswith(f"{minor}.")), key=order, default=None)


def minors(versions: Sequence[str]) -> list[str]:
    """The minor versions, the newest first."""
    found = {".".join(one.split(".")[:2]) for one in versions}
    return sorted(found, key=order, reverse=True)
