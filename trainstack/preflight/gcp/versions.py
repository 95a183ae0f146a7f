"""The check of the Kubernetes version: offered by the release channel of GKE."""

from collections.abc import Iterator, Sequence

from infra.stackspec.model import demanded
from trainstack.preflight.answers import Answer, State
from trainstack.preflight.gcp.project import Project
from trainstack.versions.gcp import gke

_CHECK = "kubernetes-version"


def kubernetes(project: Project) -> Iterator[Answer]:
    """The channel offers a version of the minor version that the spec names.

    Source: discovery document container v1, ServerConfig and ReleaseChannelConfig.
    """
    minor, channel = project.cluster.kubernetes_version, demanded(project.on.channel)
    offered = gke.channels(project.server_config)
    here = offered.get(channel)
    if here is None:
        text = f"GKE does not report the channel {channel} in {project.spec.region}"
        yield Answer(_CHECK, State.UNKNOWN, text, f"It reports {', '.join(offered) or 'none'}.")
        return
    newest = gke.newest(here.versions, minor)
    if newest is None:
        others = [name for name, one in offered.items() if gke.newest(one.versions, minor)]
        yield Answer(
            _CHECK, State.SHORT, f"the channel {channel} does not offer {minor}", _fix(here.versions, others)
        )
    else:
        text = f"{minor} in the channel {channel}: {newest} is the newest, {here.default} its default"
        yield Answer(_CHECK, State.READY, text)


def _fix(versions: Sequence[str], others: Sequence[str]) -> str:
    minors = ", ".join(gke.minors(versions)) or "none"
    fix = f"Set layout.kubernetes_version to one of {minors}"
    return f"{fix}, or on.channel to {' or '.join(others)}." if others else f"{fix}."
