"""Connections with exactly the rights of a team's member."""

from pathlib import Path

from components.kubernetes.queueing.kueue import TEAM_LABEL
from rehearsal.controlplane.api import Access, KubernetesApi
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.queues.tenants import RBAC


def member(plane: ControlPlane, api: KubernetesApi, namespace: str) -> Access:
    """The access of a member of the team with this namespace."""
    return member_of(plane.home, api, namespace)


def member_of(home: Path, api: KubernetesApi, namespace: str) -> Access:
    """The same, for the control plane in a folder."""
    assert api.get("v1", "Namespace", namespace)["metadata"]["labels"][TEAM_LABEL] == namespace
    # Programs have bindings there, too.
    subjects = [each for row in api.list(RBAC, "RoleBinding", namespace) for each in row["subjects"]]
    subject = next(each for each in subjects if each["kind"] == "Group")
    pair = Authority(home / "certificates").sign("ada", (subject["name"],))
    return Access(api.access.server, api.access.authority, pair.certificate, pair.key)
