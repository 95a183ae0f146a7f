"""Control plane of a cluster: logs and supported versions."""

import datetime
from collections.abc import Iterator
from typing import Any

from policies.catalog import CATALOG, Violation
from policies.resource import Resource, UndeterminedError
from policies.stack import Stack

EKS, GKE = "aws:eks/cluster:Cluster", "gcp:container/cluster:Cluster"


@CATALOG.rule_around(
    "MLS-K8S-07",
    "medium",
    (EKS, GKE),
    "Without logs no request can be traced; a version out of support gets no fixes, or costs six times.",
    "Enable the logs of the control plane, and upgrade; on Google Cloud, take a release channel.",
    ("FSBP EKS.8", "FSBP EKS.2", "CKV_AWS_37", "CKV_AWS_339"),
)
def the_control_plane_is_logged_and_supported(cluster: Resource, stack: Stack) -> Iterator[Violation]:
    """The control plane writes logs, and runs a version of Kubernetes in standard support."""
    if cluster.kind == EKS:
        # Nothing is logged by default (EKS User Guide, Send control plane logs to CloudWatch Logs).
        logged = cluster.props.get("enabledClusterLogTypes") or ()
        missing = [name for name in stack.settings.control_plane_logs if name not in logged]
        if missing:
            yield Violation(f"it does not log {', '.join(missing)}", "enabledClusterLogTypes")
        yield from _support(cluster, stack.settings.today)
    else:
        yield from _gke(cluster)


def _support(cluster: Resource, today: datetime.date) -> Iterator[Violation]:
    from infra.catalog.aws import facts  # noqa: PLC0415 - takes longer to load than all rules
    from infra.catalog.errors import UnknownFactError  # noqa: PLC0415

    version = cluster.props.get("version") or cluster.computed("version")
    # The default version of EKS is in standard support at creation.
    if not version:
        raise UndeterminedError("the version is not known")
    try:
        support = facts.eks.support(str(version), today)
    except UnknownFactError:
        raise UndeterminedError(f"the end of support of Kubernetes {version} is not known") from None
    if support == "unknown":
        raise UndeterminedError(f"the end of support of Kubernetes {version} is not known")
    if support != "standard":
        status = "is no longer supported" if support == "ended" else "is in extended support only"
        yield Violation(f"on {today} Kubernetes {version} {status}", "version")


def _gke(cluster: Resource) -> Iterator[Violation]:
    props: Any = cluster.props
    components = (props.get("loggingConfig") or {}).get("enableComponents")
    # The audit log of the API is always on; these are the logs of the system's parts.
    if props.get("loggingService") == "none" or (components is not None and not components):
        yield Violation("nothing is logged", "loggingConfig.enableComponents")
    channel = (props.get("releaseChannel") or cluster.computed("releaseChannel") or {}).get("channel")
    if channel is None:
        raise UndeterminedError("the release channel is not known")
    if channel == "UNSPECIFIED":
        yield Violation("it is in no release channel", "releaseChannel.channel")
