"""The Deployment of a standing program: one writer, probed, with its own account's token and nothing else."""

from typing import Any

import pytest

from components.kubernetes.programs.deployment import PORT, ProgramDeployment, program_deployment
from components.kubernetes.programs.program import ROOT, Program
from tests.components.graph import deploy_graph

RUNS = ProgramDeployment(
    program=Program("agents.waiting.dry_run"),
    name="books",
    namespace="trainstack-books",
    account="books",
    image="example.com/python@sha256:" + "0" * 64,
    arguments={"every": "10"},
)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    graph = deploy_graph(lambda: {"id": program_deployment("books", RUNS, [], lambda opts=None: opts).id})
    return {kind: graph.find(kind) for kind in ("Deployment", "ConfigMap")}


def test_no_second_pod_writes_beside_the_first(made: dict[str, Any]) -> None:
    spec = made["Deployment"]["spec"]
    assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}


def test_it_is_probed_on_its_port(made: dict[str, Any]) -> None:
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    assert words[words.index("--port") + 1] == str(PORT)
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": PORT}


def test_another_program_is_another_config_map_and_so_another_pod(made: dict[str, Any]) -> None:
    pod = made["Deployment"]["spec"]["template"]["spec"]
    name = made["ConfigMap"]["metadata"]["name"]
    assert name == f"books-{RUNS.program.digest}" and made["ConfigMap"]["immutable"]
    assert {"name": "program", "mountPath": ROOT, "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert [one["configMap"]["name"] for one in pod["volumes"] if one["name"] == "program"] == [name]
    assert pod["automountServiceAccountToken"] is False and pod["serviceAccountName"] == "books"
