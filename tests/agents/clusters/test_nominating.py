"""The status that the dispatcher applies as the field manager of Kueue."""

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.clusters.nominating import ApplyingServer, applied, nomination

CONDITIONS = [
    {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"},
    {"type": "PodsReady", "status": "False", "reason": "WaitForStart"},
]
PARTS: dict[str, Any] = {'k:{"name":"main"}': {".": {}, "f:name": {}}}
CONDITION: dict[str, Any] = {".": {}, "f:type": {}, "f:status": {}, "f:reason": {}}
OWNED = {
    "f:status": {
        "f:admission": {"f:clusterQueue": {}, "f:podSetAssignments": PARTS},
        "f:conditions": {'k:{"type":"QuotaReserved"}': CONDITION},
    }
}
WORKLOAD: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {
        "name": "job", "namespace": "team", "resourceVersion": "7", "uid": "u",
        "managedFields": [
            {"manager": "kueue", "operation": "Update", "fieldsV1": {"f:status": {"f:admissionChecks": {}}}},
            {"manager": "kueue-admission", "operation": "Apply", "subresource": "status", "fieldsV1": OWNED},
        ],
    },
    "status": {
        "admission": {"clusterQueue": "team", "podSetAssignments": [{"name": "main", "count": 1}]},
        "conditions": CONDITIONS,
        "admissionChecks": [{"name": "clusters", "state": "Pending"}],
    },
}  # fmt: skip


def test_what_kueue_applied_is_repeated_and_nothing_else_is_taken() -> None:
    asked = nomination(WORKLOAD, "east")
    assert asked["metadata"] == {"name": "job", "namespace": "team", "resourceVersion": "7"}
    assert asked["status"] == {
        "admission": {"clusterQueue": "team", "podSetAssignments": [{"name": "main"}]},
        "conditions": [CONDITIONS[0]],
        "nominatedClusterNames": ["east"],
    }


def test_an_object_that_kueue_has_not_applied_yet_gets_the_cluster_alone() -> None:
    bare = {**WORKLOAD, "metadata": {**WORKLOAD["metadata"], "managedFields": []}}
    assert applied(bare) == {}
    assert nomination(bare, "east")["status"] == {"nominatedClusterNames": ["east"]}


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml",
        b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\n{",
        b"nothing\r\n\r\n",
    ],
)
def test_a_broken_response_is_an_error_that_the_dispatcher_logs(broken: bytes, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(broken)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        server = ApplyingServer.__new__(ApplyingServer)
        server.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server._account, server._context = tmp_path, ssl.create_default_context()
        try:
            status, answered = server.apply("/x", {})
        except OSError:
            pass
        else:
            assert isinstance(answered["message"], str), status
        thread.join()
