"""Versions that release channels of GKE offer, and the check that a channel offers the one of a spec."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.stackspec.model import demanded
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project
from trainstack.version_order import order

_CHECK = "kubernetes-version"


@dataclass(frozen=True)
class Channel:
    """A release channel of GKE in one region."""

    default: str
    """The version that new clusters get."""
    versions: tuple[str, ...]
    """All that clusters can have."""


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


def newest_minor(config: Mapping[str, Any], channel: str, wanted: str) -> str | None:
    """The newest minor version that a channel offers; None for a channel that GKE does not report.

    Raises ValueError where it does not offer `wanted`: a cluster with that version cannot be made.
    """
    found = channels(config).get(channel)
    if found is None:
        return None
    offered = minors(found.versions)
    if wanted not in offered:
        where = ", ".join(name for name, one in channels(config).items() if newest(one.versions, wanted))
        also = f", but in {where}" if where else ""
        raise ValueError(
            f"the channel {channel} offers {', '.join(offered) or 'nothing'}, not {wanted}{also}"
        )
    return offered[0]


def minors(versions: Sequence[str]) -> list[str]:
    """The minor versions, the newest first."""
    found = {".".join(one.split(".")[:2]) for one in versions}
    return sorted(found, key=order, reverse=True)


def kubernetes(project: Project) -> Iterator[Answer]:
    """The channel offers a version of the minor version that the spec names.

    Source: discovery document container v1, ServerConfig and ReleaseChannelConfig.
    """
    minor, channel = project.cluster.kubernetes_version, demanded(project.on.channel)
    offered = channels(project.server_config)
    here = offered.get(channel)
    if here is None:
        text = f"GKE does not report the channel {channel} in {project.spec.region}"
        yield Answer(_CHECK, State.UNKNOWN, text, f"It reports {', '.join(offered) or 'none'}.")
        return
    latest = newest(here.versions, minor)
    if latest is None:
        others = [name for name, one in offered.items() if newest(one.versions, minor)]
        yield Answer(
            _CHECK, State.SHORT, f"the channel {channel} does not offer {minor}", _fix(here.versions, others)
        )
    else:
        text = f"{minor} in the channel {channel}: {latest} is the newest, {here.default} its default"
        yield Answer(_CHECK, State.READY, text)


def _fix(versions: Sequence[str], others: Sequence[str]) -> str:
    fix = f"Set layout.kubernetes_version to one of {', '.join(minors(versions)) or 'none'}"
    return f"{fix}, or on.channel to {' or '.join(others)}." if others else f"{fix}."
