"""The ledger's component: configuration and permissions of its program."""

import json
from typing import Any

import pytest

from agents.gpu_ledger.check import CHECK, CONTROLLER
from components.kubernetes.accounting.gpu_ledger import NAMESPACE, GpuLedger
from components.kubernetes.queueing import kueue
from tests.components.graph import Graph, deploy_graph

EXEMPT = {"kind": "job", "name": "a", "reason": "b", "approved_by": "c@example.com", "last_day": "never"}
BUDGET = {"usd": 5, "stop": True, "exempt": [EXEMPT]}
TEAMS: Any = [
    {
        "name": "Research",
        "namespace": "team-research",
        "budget": {"usd": 5, "stop": True, "exempt": [EXEMPT]},
    },
    {"name": "Vision", "namespace": "team-vision"},
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    args: Any = {"teams": TEAMS, "prices": {"a100": {"nvidia.com/gpu": 4.1}}, "image": "example.com/python"}
    return deploy_graph(lambda: {"at": GpuLedger("ledger", args).namespace})


def rules(graph: Graph, name: str) -> dict[str, set[str]]:
    (role,) = [
        one.properties
        for one in graph.cloud.asked
        if one.type.endswith("ClusterRole") and one.properties["metadata"]["name"] == name
    ]
    return {rule["resources"][0]: set(rule["verbs"]) for rule in role["rules"]}


def test_the_program_gets_budgets_and_prices(graph: Graph) -> None:
    (container,) = graph.find("Deployment")["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    config = json.loads(words[words.index("--config") + 1])
    assert config == {
        "teams": {"team-research": "Research", "team-vision": "Vision"},
        "budgets": {"team-research": {"usd": 5, "gpu_hours": None, "stop": True, "exempt": [EXEMPT]}},
        "parts": {},
        "prices": {"a100": {"nvidia.com/gpu": 4.1}},
        "prometheus": None,
    }


def test_it_reads_workloads_and_writes_only_what_it_answers_and_books_of_teams(graph: Graph) -> None:
    assert rules(graph, "gpu-ledger-queues") == {
        "workloads": {"list", "watch", "patch"},
        "workloads/status": {"patch"},
        "admissionchecks/status": {"patch"},
        **{kind: {"list", "watch"} for kind in ("jobs", "jobsets", "trainjobs")},
        "workloadpriorityclasses": {"list"},
    }
    assert rules(graph, "gpu-ledger-books") == {
        "configmaps": {"get", "create", "update"},
        "events": {"create", "patch"},
    }
    bound = {
        one.properties["metadata"]["namespace"]
        for one in graph.cloud.asked
        if one.type.endswith(":RoleBinding")
    }
    assert bound == {"team-research", "team-vision"}


def test_it_lists_pods_and_asks_prometheus_only_where_there_is_one() -> None:
    given: Any = {"teams": TEAMS, "prices": {}, "image": "example.com/python", "prometheus": "http://p:9090"}
    asking = deploy_graph(lambda: {"at": GpuLedger("ledger", given).namespace})
    assert rules(asking, "gpu-ledger-books")["pods"] == {"list"}
    assert asking.find("Namespace")["metadata"]["labels"]["trainstack.dev/queries"] == "allowed"
    (egress,) = [
        one["spec"]["egress"] for one in asking.all("NetworkPolicy").values() if "egress" in one["spec"]
    ]
    assert {"port": 9090, "protocol": "TCP"} in [port for rule in egress for port in rule.get("ports", ())]


def test_only_readers_of_metrics_reach_it(graph: Graph) -> None:
    assert graph.find("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    policies = [one.properties for one in graph.cloud.asked if one.type.endswith("NetworkPolicy")]
    assert {one["metadata"]["namespace"] for one in policies} == {NAMESPACE}
    (ingress,) = [rule for one in policies for rule in one["spec"].get("ingress") or ()]
    assert ingress["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_only_queues_of_teams_that_a_budget_stops_ask() -> None:
    node: Any = {"name": "a100", "node_labels": {}, "max_nodes": 2, "cpu": 8, "memory_gib": 8, "gpus": 8}
    teams: Any = [{"name": "A", "weight": 1, "budgeted": True}, {"name": "B", "weight": 1}]
    bodies = [body for layer in kueue.layers([node], teams, {"nodes": {}}) for body in layer]
    checks = [body for body in bodies if body["kind"] == "AdmissionCheck"]
    assert [(one["metadata"]["name"], one["spec"]) for one in checks] == [
        (CHECK, {"controllerName": CONTROLLER})
    ]
    asking = {
        body["metadata"]["name"]: body["spec"].get("admissionChecksStrategy")
        for body in bodies
        if body["kind"] == "ClusterQueue"
    }
    assert asking == {"team-a": {"admissionChecks": [{"name": CHECK}]}, "team-b": None}
