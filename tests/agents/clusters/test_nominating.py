"""The status that the dispatcher applies as the field manager of Kueue."""

from typing import Any

from agents.clusters.nominating import applied, nomination

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
