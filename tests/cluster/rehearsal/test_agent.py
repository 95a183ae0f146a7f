"""The node agent while the API server denies it rights, as after its start."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.controlplane.api import KubernetesApi, Object
from tests.cluster import local_node
from tests.cluster.waiting import eventually

_RBAC = "rbac.authorization.k8s.io/v1"
# Rights of an agent, one of which each test removes.
_RIGHTS = (
    *("nodes", "nodes/status", "pods", "pods/status", "services", "services/status", "endpoints"),
    *("endpointslices", "jobs", "serviceaccounts", "serviceaccounts/token", "configmaps", "secrets"),
)


def role(name: str, refused: str = "") -> Object:
    resources = [right for right in _RIGHTS if right != refused]
    rules = [{"apiGroups": ["*"], "resources": resources, "verbs": ["*"]}]
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


@pytest.fixture
def agent_api(api: KubernetesApi, namespace: str) -> Iterator[KubernetesApi]:
    """The connection of an agent, whose rights are those of the ClusterRole of the namespace's name."""
    metadata = {"name": "agent", "namespace": namespace}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    binding: Object = {
        "apiVersion": _RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": namespace},
        "roleRef": reference, "subjects": [{"kind": "ServiceAccount", **metadata}],
    }  # fmt: skip
    for body in (account, role(namespace), binding):
        api.create(body)
    token = api.token(namespace, "agent")
    with KubernetesApi(dataclasses.replace(api.access, certificate=None, key=None, token=token)) as own:
        yield own
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        api.delete(_RBAC, kind, namespace)


def pod(namespace: str) -> list[Object]:
    """A pod that ends well, with what it needs."""
    key = {"secretKeyRef": {"name": "words", "key": "word"}}
    container = {
        "name": "main", "image": "python", "command": ["python", "/code/main.py"],
        "env": [{"name": "WORD", "valueFrom": key}],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
    }  # fmt: skip
    volumes = [{"name": "code", "configMap": {"name": "code"}}]
    spec = {
        "nodeName": local_node.NAME,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": volumes,
    }
    parts: list[tuple[str, str, Object]] = [
        ("Secret", "words", {"stringData": {"word": "hello"}}),
        ("ConfigMap", "code", {"data": {"main.py": "import os; assert os.environ['WORD'] == 'hello'"}}),
        ("ServiceAccount", "runs", {}),
        ("Pod", "one", {"spec": {**spec, "serviceAccountName": "runs"}}),
    ]
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **more}
        for kind, name, more in parts
    ]


@pytest.mark.parametrize("refused", ["serviceaccounts/token", "configmaps", "secrets"])
def test_a_pod_starts_later_when_the_server_refuses_what_it_needs_at_first(
    api: KubernetesApi, agent_api: KubernetesApi, namespace: str, tmp_path: Path, refused: str
) -> None:
    api.apply(role(namespace, refused))

    def phase() -> str:
        return str(api.get("v1", "Pod", "one", namespace)["status"]["phase"])

    def waiting() -> str:
        rows = api.get("v1", "Pod", "one", namespace)["status"].get("containerStatuses") or [{}]
        return str(rows[0].get("state", {}).get("waiting", {}).get("message", ""))

    with local_node.joined(api, tmp_path, agent_api=agent_api):
        for body in pod(namespace):
            api.create(body)
        eventually(
            lambda: f'cannot {"create" if "/" in refused else "get"} resource "{refused}"' in waiting(),
            waiting,
        )
        assert phase() == "Pending"
        api.apply(role(namespace))
        eventually(lambda: phase() == "Succeeded", phase)
