"""Rights of team members on the real API server: all in their namespace, none elsewhere."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from components.kubernetes.people import SubjectArgs
from components.kubernetes.queueing.given import CLAIMS
from components.kubernetes.queueing.kueue import API_VERSION, GATE_NAMESPACE
from components.kubernetes.tracking.port_forward import MlflowVisitors
from rehearsal.controlplane.api import ApiError, KubernetesApi, Object
from rehearsal.controlplane.control_plane import ControlPlane
from tests.cluster.manifests import manifests
from tests.cluster.queues.tenants import RBAC, TEAMS, VOLUMES, Tenants, secret, two_teams
from tests.cluster.waiting import eventually
from tests.components.graph import deploy_graph

# What a team works with.
KINDS = [
    ("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("v1", "Pod"), ("v1", "Secret"),
    ("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"),
]  # fmt: skip
SEEN = [(API_VERSION, "Workload"), (API_VERSION, "LocalQueue"), ("v1", "Event"), ("v1", "LimitRange")]
# What everybody sees of the cluster: how large pools are, and how much each queue holds; no job of others.
SHOWN = [
    (API_VERSION, "ClusterQueue"), (API_VERSION, "Cohort"), (API_VERSION, "ResourceFlavor"),
    (API_VERSION, "Topology"),
]  # fmt: skip
# Resources that no member can read, not even by name.
HIDDEN = [
    ("v1", "PersistentVolume"),
    (API_VERSION, "WorkloadPriorityClass"), (API_VERSION, "AdmissionCheck"),
    ("v1", "Namespace"), ("v1", "Node"), (RBAC, "ClusterRole"),
]  # fmt: skip


@pytest.fixture(scope="module", params=list(TEAMS))
def tenants(plane: ControlPlane, api: KubernetesApi, request: pytest.FixtureRequest) -> Iterator[Tenants]:
    """Members are in a team's group, or named one by one: either way they may do the same."""
    with two_teams(plane, api, request.param) as made:
        yield made


def job(namespace: str, **pod: Any) -> Object:
    container = {"name": "main", "image": "example.com/none:1"}
    spec = {"restartPolicy": "Never", "containers": [container], **pod}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "more", "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }  # fmt: skip


def refused(attempt: Callable[..., Any], *args: Any, code: int = 403, **more: Any) -> str:
    """Why the API server refused an attempt."""
    with pytest.raises(ApiError) as refusal:
        attempt(*args, **more)
    assert refusal.value.code == code, refusal.value
    return str(refusal.value)


def refused_as_invalid(attempt: Callable[..., Any], *args: Any, **more: Any) -> str:
    """Why an admission policy refused an attempt."""
    return refused(attempt, *args, code=422, **more)


def watched(mine: KubernetesApi, version: str, kind: str, namespace: str) -> Object:
    """The first object of a watch."""
    return next(mine.watch(version, kind, namespace, timeout_s=5))[1]


def test_members_see_and_change_what_is_theirs(tenants: Tenants) -> None:
    mine, own = tenants.research, tenants.own
    for version, kind in (*KINDS, *SEEN):
        mine.list(version, kind, own)
    assert mine.get("v1", "Secret", "token", own)["data"]
    assert watched(mine, "batch/v1", "Job", own)["metadata"]["name"] == "research-job"
    (pod,) = mine.list("v1", "Pod", own)
    with pytest.raises(ApiError) as no_kubelet:  # it was let through to the node
        mine.text(f"/api/v1/namespaces/{own}/pods/{pod['metadata']['name']}/log")
    assert no_kubelet.value.code != 403
    mine.create(job(own))
    mine.patch("batch/v1", "Job", "more", {"metadata": {"labels": {"mine": "yes"}}}, own)
    mine.delete("batch/v1", "Job", "more", own, propagation="Background")


@pytest.mark.parametrize("where", ["the other team's", "the gate's", "the whole cluster's"])
def test_members_see_and_change_nothing_of_others(tenants: Tenants, where: str) -> None:
    mine = tenants.research
    namespace = {"the other team's": tenants.other, "the gate's": GATE_NAMESPACE}.get(where, "")
    for version, kind in (*KINDS, *SEEN):
        refused(mine.list, version, kind, namespace)
        refused(watched, mine, version, kind, namespace)
    if not namespace:
        return
    path = f"/api/v1/namespaces/{namespace}/pods/some"
    refused(mine.text, f"{path}/log")
    refused(mine.request, "POST", f"{path}/exec", query={"command": "sh"})
    refused(mine.get, "batch/v1", "Job", "vision-job", namespace)
    refused(mine.get, "v1", "Secret", "token", namespace)
    refused(mine.create, job(namespace))
    refused(mine.delete, "batch/v1", "Job", "vision-job", namespace)
    refused(mine.token, namespace, "default")


def test_members_do_not_see_what_belongs_to_the_cluster(tenants: Tenants) -> None:
    for version, kind in HIDDEN:
        refused(tenants.research.list, version, kind)


def test_members_see_queues_and_pools_and_change_none(tenants: Tenants) -> None:
    mine = tenants.research
    for version, kind in SHOWN:
        mine.list(version, kind)
    # Amounts of the other team, whose jobs are hidden.
    assert mine.get(API_VERSION, "ClusterQueue", tenants.other)["status"]["flavorsReservation"]
    refused(mine.patch, API_VERSION, "ClusterQueue", tenants.own, {"spec": {"stopPolicy": "Hold"}})
    refused(mine.delete, API_VERSION, "ResourceFlavor", "cpu")
    places = "/apis/visibility.kueue.x-k8s.io/v1beta2"
    pending = f"{places}/namespaces/{tenants.own}/localqueues/default/pendingworkloads"
    assert eventually(partial(_answered, mine, pending), "Kueue's own API serves")["items"] == []
    for path in (
        pending.replace(tenants.own, tenants.other),
        f"{places}/clusterqueues/{tenants.own}/pendingworkloads",
    ):
        refused(mine.request, "GET", path)


def _answered(mine: KubernetesApi, path: str) -> Object | None:
    """The answer of an aggregated API, which the API server reaches some time after its program starts."""
    try:
        return mine.request("GET", path)
    except ApiError as error:
        if error.code != 503:
            raise
        return None


def test_members_cannot_give_themselves_more(tenants: Tenants) -> None:
    mine, own = tenants.research, tenants.own
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ada"}
    for kind, namespace in (("RoleBinding", own), ("ClusterRoleBinding", "")):
        metadata = {"name": "more", **({"namespace": namespace} if namespace else {})}
        binding = {"apiVersion": RBAC, "kind": kind, "metadata": metadata}
        refused(mine.create, {**binding, "roleRef": reference, "subjects": [subject]})
    unmanaged = {"metadata": {"labels": {"trainstack.dev/queueing": None}}}
    refused(mine.patch, "v1", "Namespace", own, unmanaged)
    refused(mine.patch, API_VERSION, "LocalQueue", "default", {"spec": {"clusterQueue": tenants.other}}, own)
    refused(mine.delete, API_VERSION, "LocalQueue", "default", own)
    refused(mine.delete, "v1", "LimitRange", "default-requests", own)
    refused(mine.delete, "v1", "ResourceQuota", "no-system-priority", own)
    # That of the other test's Job may still be there: it goes in the background.
    workload = next(
        row
        for row in mine.list(API_VERSION, "Workload", own)
        if row["metadata"]["ownerReferences"][0]["name"] == "research-job"
    )
    named = (API_VERSION, "Workload", workload["metadata"]["name"])
    refused(mine.patch, *named, {"spec": {"priority": 10**6}}, own)
    refused(mine.patch, *named, {"status": {}}, own, subresource="status")


def claim(namespace: str, name: str, volume: str = "") -> Object:
    spec = {
        "accessModes": ["ReadWriteMany"], "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}}, **({"volumeName": volume} if volume else {}),
    }  # fmt: skip
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_members_mount_what_was_given_and_can_neither_change_nor_add_to_it(tenants: Tenants) -> None:
    mine, own = tenants.research, tenants.own

    def bound(name: str) -> bool:
        return bool(mine.get("v1", "PersistentVolumeClaim", name, own)["status"].get("phase") == "Bound")

    for name in VOLUMES:
        found = mine.get("v1", "PersistentVolumeClaim", name, own)
        assert found["spec"]["volumeName"] == f"{own}-{name}"
        eventually(partial(bound, name), "the claim is bound")
    # What is mounted read-only stays so, whatever the pod says: members do not change the volume.
    mounted = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in VOLUMES]
    mine.create(job(own, volumes=mounted), dry_run=True)
    assert tenants.lab.api.get("v1", "PersistentVolume", f"{own}-datasets")["spec"]["mountOptions"][1] == "ro"
    refused(mine.patch, "v1", "PersistentVolume", f"{own}-datasets", {"spec": {"mountOptions": ["flock"]}})
    assert CLAIMS in refused_as_invalid(mine.create, claim(own, "more"), dry_run=True)
    for kind, name in (("PersistentVolumeClaim", "checkpoints"), ("Secret", "given"), ("ConfigMap", "given")):
        assert "only administrators" in refused_as_invalid(mine.delete, "v1", kind, name, own)
        label = {"metadata": {"labels": {"trainstack.dev/given": None}}}
        assert "only administrators" in refused_as_invalid(mine.patch, "v1", kind, name, label, own)
    assert "only administrators" in refused_as_invalid(
        mine.request, "DELETE", f"/api/v1/namespaces/{own}/persistentvolumeclaims"
    )
    spare = secret(own)
    spare["metadata"] = {"name": "spare", "namespace": own}
    mine.create(spare)
    mine.delete("v1", "Secret", "spare", own)


def test_a_volume_that_is_given_binds_to_no_claim_of_another_team(tenants: Tenants, namespace: str) -> None:
    # As if there were no quota: by an administrator, who names the other team's volume.
    api, volume = tenants.lab.api, f"{tenants.other}-checkpoints"
    api.create(claim(namespace, "checkpoints", volume))
    eventually(
        lambda: any(
            f'volume "{volume}" already bound to a different claim' in str(one.get("message"))
            for one in api.list("v1", "Event", namespace)
        ),
        "the claim is refused its volume",
    )
    assert api.get("v1", "PersistentVolume", volume)["spec"]["claimRef"]["namespace"] == tenants.other


def test_members_come_to_the_tracking_server_and_see_no_secret_of_it(
    tenants: Tenants, namespace: str
) -> None:
    api, mine = tenants.lab.api, tenants.research
    bound = api.list(RBAC, "RoleBinding", tenants.own)[0]["subjects"]
    people: list[SubjectArgs] = [{"kind": one["kind"], "name": one["name"]} for one in bound]

    def program() -> dict[str, Any]:
        MlflowVisitors("visitors", {"namespace": namespace, "people": people})
        return {}

    for body in manifests(deploy_graph(program)):
        api.create(body)
    ports = [{"port": 5000}]
    for name in ("mlflow", "other"):
        metadata = {"name": name, "namespace": namespace}
        api.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    eventually(lambda: _allowed(mine, f"{pods}/none/portforward"), "the forward is allowed")
    assert mine.get("v1", "Service", "mlflow", namespace)["spec"]["ports"][0]["port"] == 5000
    assert mine.list("v1", "Pod", namespace) == []
    refused(mine.get, "v1", "Service", "other", namespace)
    refused(mine.request, "POST", f"{pods}/none/exec", query={"command": "sh"})
    for kind in ("Secret", "ConfigMap"):
        refused(mine.list, "v1", kind, namespace)


def _allowed(mine: KubernetesApi, path: str) -> bool:
    """Whether a POST is let through: here there is nothing at the end of it."""
    try:
        mine.request("POST", path)
    except ApiError as error:
        return error.code != 403
    return True
