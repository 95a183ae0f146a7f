"""Cloud identities of pods."""

from collections.abc import Mapping
from pathlib import Path

from rehearsal.core.model import Record
from rehearsal.core.state import State
from rehearsal.dataplane.aws.eks_logins import user_of
from rehearsal.dataplane.aws.server import Dataplane
from rehearsal.dataplane.gcp.iam_bindings import allowed
from rehearsal.dataplane.gcp.identity import Caller
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.kubernetes.aws import identity as aws_identity
from rehearsal.kubernetes.clusters import GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.gcp import identity as google_identity
from rehearsal.workloads.translate import Pod

_ACCOUNTS = ".gserviceaccount.com"
_CONNECT = "container.clusters.connect"


class PodIdentities:
    """Emulated cloud services for pods of any cluster, until `stop`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._aws = Dataplane(state)
        self._google = GooglePlane(state, aws=self._aws.identities)

    def environment(self, cluster: KubeCluster, pod: Pod, folder: Path) -> Mapping[str, str]:
        """Variables of a pod; `folder` is its own, for its token."""
        if cluster.record.type == GKE_CLUSTER:
            return google_identity.environment(self._google, cluster, pod)
        own = aws_identity.environment(self._aws, cluster, pod, folder)
        return {**own, **google_identity.endpoints(self._google)}

    def user(self, cluster: Record, token: str) -> Mapping[str, object] | None:
        """The user of a bearer token of a cluster's cloud, as a TokenReview shows it; None for another token.

        On GKE a token of a service account of Google Cloud, which has its email as its name, and passes the
        DNS endpoint with the permission `container.clusters.connect` (GKE documentation, "Customize your
        network isolation"). Permissions that a cloud grants beside RBAC are not emulated.
        """
        if cluster.type == GKE_CLUSTER:
            caller = self._google.identities.caller(token)
            known = caller is not None and caller.name.endswith(_ACCOUNTS) and self._connects(cluster, caller)
            return {"username": caller.name} if caller and known else None
        return user_of(self._state, self._aws.identities, cluster, token)

    def _connects(self, cluster: Record, caller: Caller) -> bool:
        ways = cluster.inputs.get("controlPlaneEndpointsConfig") or {}
        by_name = (ways.get("dnsEndpointConfig") or {}).get("allowExternalTraffic") is True
        return not by_name or allowed(self._state, caller.members, _CONNECT, cluster, cluster.id)

    def stop(self) -> None:
        """Close every port."""
        self._aws.stop()
        self._google.stop()
