"""The API client of our programs in pods with a real API server: long lists and watches."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.shared import api_server
from agents.shared.api_server import ApiServer, ApiServerError
from rehearsal.controlplane.api import KubernetesApi


@pytest.fixture
def server(
    api: KubernetesApi, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ApiServer]:
    """As an account that may do everything with ConfigMaps of the test's namespace, and nothing else."""
    rights: list[Any] = [
        {"apiVersion": "v1", "kind": "ServiceAccount"},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        },
    ]  # fmt: skip
    for body in rights:
        api.create({**body, "metadata": {"name": "reader", "namespace": namespace}})
    (tmp_path / "ca.crt").write_bytes(api.access.authority.read_bytes())
    (tmp_path / "token").write_text(api.token(namespace, "reader"))
    host, port = api.access.server.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    yield ApiServer(tmp_path)


def named(number: int, **labels: str) -> Any:
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": f"one-{number}", "labels": labels}, "data": {"value": "0"},
    }  # fmt: skip


def test_a_list_of_many_pages_is_whole_and_a_watch_goes_on_from_it(
    server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "_PAGE", 3)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(7):
        server.must("POST", path, named(number, ours="yes"))
    server.must("POST", path, named(7))
    pages = [*server.paged(path, labelSelector="ours=yes")]
    assert [len(page) for page, _ in pages] == [3, 3, 1]
    found = [one for page, _ in pages for one in page]
    assert sorted(one["metadata"]["name"] for one in found) == [f"one-{number}" for number in range(7)]
    assert [*server.every(path, labelSelector="ours=yes")] == found
    version = pages[-1][1]
    changes: list[tuple[str, str]] = []

    def watch() -> None:
        for change in server.watched(path, version, 5, labelSelector="ours=yes"):
            changes.append((change["type"], change["object"]["metadata"].get("name", "")))
            if change["type"] == "DELETED":
                return

    watching = threading.Thread(target=watch)
    watching.start()
    server.must("PATCH", f"{path}/one-2", {"data": {"value": "1"}})
    server.must("DELETE", f"{path}/one-3")
    watching.join(20)
    assert [change for change in changes if change[0] != "BOOKMARK"] == [
        ("MODIFIED", "one-2"),
        ("DELETED", "one-3"),
    ]
    assert server.must("GET", f"{path}/one-2")["data"] == {"value": "1"}


def test_an_error_has_its_status(server: ApiServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for method, wanted, status in (
        ("GET", f"{path}/nothing", 404),
        ("GET", "/api/v1/secrets", 403),
    ):
        with pytest.raises(ApiServerError) as refused:
            server.must(method, wanted)
        assert refused.value.status == status and str(refused.value).startswith(f"{status} ")
    with pytest.raises(ApiServerError) as forbidden:
        list(server.watched("/api/v1/secrets", "0", 5))
    assert forbidden.value.status == 403
