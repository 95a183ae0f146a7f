"""Rank and hosts of a node, by service."""

import json
from pathlib import Path

import pytest

from agents.managed_job import services
from agents.managed_job.aws import node
from agents.managed_job.aws.folders import below
from agents.managed_job.folders import Folders
from agents.managed_job.job_node import ALONE
from smoke_training.reader import DocumentError

JOB = {"TRAINING_JOB_NAME": "small-aws-anna-1"}


def written(folders: Folders, **changes: object) -> None:
    folders.resources.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "current_host": "algo-2", "hosts": ["algo-2", "algo-1"], "current_instance_type": "ml.g6.xlarge",
        "network_interface_name": "eth0", **changes,
    }  # fmt: skip
    folders.resources.write_text(json.dumps(document))


def test_hosts_are_in_the_same_order_on_every_node(tmp_path: Path) -> None:
    folders = below(tmp_path)
    written(folders)
    found = services.find_node(JOB, folders)
    assert (found.index, found.first, found.nodes, found.machine, found.job) == (
        1, "algo-1", 2, "ml.g6.xlarge", "small-aws-anna-1",
    )  # fmt: skip
    written(folders, hosts=["algo-1", "algo-2"], current_host="algo-1")
    assert services.find_node(JOB, folders).index == 0


def test_the_document_may_come_late_and_in_parts(tmp_path: Path) -> None:
    folders, looks = below(tmp_path), 0

    def wait() -> None:
        nonlocal looks
        looks += 1
        written(folders)
        if looks == 1:
            folders.resources.write_text(folders.resources.read_text()[:20])

    assert services.find_node(JOB, folders, wait).index == 1
    assert looks == 2


def test_a_document_that_never_comes_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "PATIENCE_S", 0.0)
    with pytest.raises(DocumentError, match=r"resourceconfig\.json: not there"):
        services.find_node(JOB, below(tmp_path))


def test_a_host_that_is_none_of_the_hosts_is_a_fault(tmp_path: Path) -> None:
    written(below(tmp_path), current_host="algo-3")
    with pytest.raises(DocumentError, match="current_host 'algo-3'"):
        services.find_node(JOB, below(tmp_path))


def test_without_a_service_a_node_is_alone(tmp_path: Path) -> None:
    assert services.find_node({}, below(tmp_path)) == ALONE


def test_vertex_has_it_in_a_variable(tmp_path: Path) -> None:
    spec = {
        "cluster": {"workerpool1": ["b:2222", "c:2222"], "workerpool0": ["a:2222"]},
        "task": {"type": "workerpool1", "index": 1},
    }
    found = services.find_node({"CLUSTER_SPEC": json.dumps(spec), "CLOUD_ML_JOB_ID": "7"}, below(tmp_path))
    assert (found.hosts, found.index, found.job) == (("a", "b", "c"), 2, "7")
    with pytest.raises(DocumentError, match="CLUSTER_SPEC: KeyError"):
        services.find_node({"CLUSTER_SPEC": "{}"}, below(tmp_path))


@pytest.mark.parametrize("environment", [{}, {"SAGEMAKER_BASE_DIR": "/data/ml"}])
def test_folders_lie_where_the_service_says(environment: dict[str, str]) -> None:
    base = environment.get("SAGEMAKER_BASE_DIR", "/opt/ml")
    assert str(services.folders_of(environment).failure) == f"{base}/output/failure"
    assert str(services.folders_of(environment, Path("/other")).checkpoints) == "/other/checkpoints"
