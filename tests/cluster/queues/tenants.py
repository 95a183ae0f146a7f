"""Two teams in a real cluster with all that a stack gives them, and a member of the first."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.kubernetes.people import user
from components.kubernetes.queueing.quotas import TeamArgs
from components.kubernetes.teams.claims import TeamClaims, TeamVolumes
from components.kubernetes.volumes import VolumeArgs
from rehearsal.controlplane.api import Access, ApiError, KubernetesApi, Object
from rehearsal.controlplane.certificates import Authority
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.manifests import manifests
from tests.cluster.queues.lab import Lab, flavor, machines, queues
from tests.cluster.waiting import counted, eventually
from tests.components.graph import deploy_graph

ADA, EVE = "ada@example.com", "eve@example.com"
# Teams as a cloud makes them that knows groups, and as one that knows people by their addresses.
TEAMS: dict[str, list[TeamArgs]] = {
    "a group": [{"name": "Research", "weight": 1}, {"name": "Vision", "weight": 1}],
    "a user": [
        {"name": "Research", "weight": 1, "people": [user(ADA), user("bob@example.com")]},
        {"name": "Vision", "weight": 1, "people": [user(EVE)]},
    ],
}
CPU = flavor("cpu", "g6.2xlarge", 2, gpus=0)
RBAC = "rbac.authorization.k8s.io/v1"

VOLUMES: dict[str, VolumeArgs] = {
    claim: {
        "capacity_gib": 1200,
        "source": {"driver": "lustre.example.com", "handle": f"fs-1::{claim}", "mount_options": options},
    }
    for claim, options in {"checkpoints": ["flock"], "datasets": ["flock", "ro"]}.items()
}


@dataclass
class Tenants:
    """Two teams with a Job, a Secret and a claim each; `research` connects a member of the first."""

    lab: Lab
    research: KubernetesApi
    own: str
    other: str


@contextmanager
def two_teams(plane: ControlPlane, api: KubernetesApi, known_as: str) -> Iterator[Tenants]:
    """The teams stand, their members known as a key of `TEAMS` says; afterwards nothing of them is left."""
    with machines(api, [CPU], {"cpu": "g6.2xlarge"}), queues(api, [CPU], TEAMS[known_as]) as lab:
        own, other = lab.namespaces["Research"], lab.namespaces["Vision"]
        for team, namespace in lab.namespaces.items():
            lab.submit(team, f"{team.lower()}-job")
            lab.nodes(f"{team.lower()}-job")
            api.create(secret(namespace))
            for body in given(namespace):
                api.create(body)
                if body["kind"] == "ResourceQuota":
                    # What the provider waits for.
                    eventually(partial(counted, api, body), "the quota is counted")
        subject = api.list(RBAC, "RoleBinding", own)[0]["subjects"][0]
        if known_as == "a user":
            assert subject == {"apiGroup": "rbac.authorization.k8s.io", **user(ADA)}
            pair = Authority(plane.home / "certificates").sign(ADA)
        else:
            assert subject["name"].startswith("trainstack:team:research-")
            pair = Authority(plane.home / "certificates").sign("ada", (subject["name"],))
        access = Access(plane.access.server, plane.access.authority, pair.certificate, pair.key)
        with KubernetesApi(access) as member:
            # API servers learn of a policy a moment after it was made.
            eventually(lambda: _policed(member, own), "the policies hold")
            yield Tenants(lab, member, own, other)
        for namespace in (own, other):
            for claim in VOLUMES:
                api.delete("v1", "PersistentVolumeClaim", claim, namespace)
                api.delete("v1", "PersistentVolume", f"{namespace}-{claim}")


def _policed(mine: KubernetesApi, own: str) -> bool:
    """Whether the last one that was made holds."""
    try:
        mine.patch("v1", "Secret", "given", {"metadata": {"labels": {"mine": "yes"}}}, own)
    except ApiError as error:
        return error.code == 422
    return False


def given(namespace: str) -> list[Object]:
    """What the stack puts into a team's namespace besides its queue."""

    def program() -> dict[str, Any]:
        TeamVolumes("volumes", {"namespace": namespace, "volumes": VOLUMES, "claims": "given"})
        made = TeamClaims("given", {"namespace": namespace, "volumes": VOLUMES})
        return {"claims": made.claims}

    login = secret(namespace)
    login["metadata"] = {"name": "given", "namespace": namespace, "labels": {"trainstack.dev/given": "yes"}}
    where = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": login["metadata"]}
    return [*manifests(deploy_graph(program)), login, where]


def secret(namespace: str) -> Object:
    metadata = {"name": "token", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": "value"}}
