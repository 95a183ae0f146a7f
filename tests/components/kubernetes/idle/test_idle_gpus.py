"""The idle GPU watcher has the permissions that it uses, and no others."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pytest

from components.kubernetes.idle.idle_gpus import PROGRAM, IdleGpus
from tests.components.graph import Graph, deploy_graph


@pytest.fixture(scope="module")
def made() -> Graph:
    def program() -> Mapping[str, pulumi.Input[Any]]:
        found = IdleGpus(
            "dev-idle",
            {
                "prometheus": "http://prometheus.monitoring:9090",
                "namespaces": ["team-vision", "team-audio"],
                "interactive_pools": ["l4"],
                "minutes": 45,
                "grace_minutes": 15,
                "jobs": "announce",
                "interval_s": 1800,
                "image": "i@sha256:0",
            },
        )
        return {"namespace": found.namespace}

    return deploy_graph(program)


def test_it_acts_in_the_namespaces_of_teams_and_nowhere_else(made: Graph) -> None:
    bindings = made.all("RoleBinding").values()
    assert {one["metadata"]["namespace"] for one in bindings} == {"team-vision", "team-audio"}
    assert not made.all("ClusterRoleBinding")
    for role in made.all("ClusterRole").values():
        verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
        assert verbs <= {"list", "get", "patch", "delete", "create"}
        assert all("secrets" not in rule["resources"] for rule in role["rules"])
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == ("idle", "trainstack-idle")


def test_its_pod_reaches_names_https_and_prometheus_and_shows_its_metrics(made: Graph) -> None:
    policy = made.find("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (metrics,) = policy["ingress"]
    assert metrics["ports"] == [{"port": 8080, "protocol": "TCP"}]
    assert [443, 9090] in [[port["port"] for port in rule["ports"]] for rule in policy["egress"]]
    labels = made.find("Namespace")["metadata"]["labels"]
    assert labels["trainstack.dev/queries"] == "allowed"
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_one_pod_runs_the_program_with_what_the_spec_says(made: Graph) -> None:
    deployment = made.find("Deployment")["spec"]
    assert deployment["replicas"] == 1
    (container,) = deployment["template"]["spec"]["containers"]
    words = container["args"]
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert json.loads(given["--namespaces"]) == ["team-audio", "team-vision"], "in order"
    assert (given["--minutes"], given["--grace-minutes"], given["--jobs"]) == ("45", "15", "announce")
    assert given["--interval-s"] == "1800"


def test_the_program_has_every_module_that_it_imports() -> None:
    names = set(PROGRAM.texts)
    for module, text in PROGRAM.texts.items():
        for line in text.splitlines():
            if line.startswith(("from components", "from smoke_training")):
                imported, _, what = line.removeprefix("from ").partition(" import ")
                known = {imported, *(f"{imported}.{each.strip()}" for each in what.split(","))}
                assert known & names, f"{module} imports {imported}"
