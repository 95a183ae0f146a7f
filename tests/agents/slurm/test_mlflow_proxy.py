"""Jobs of a node log to an MLflow App through the loopback: a real client and server, and a hostile job."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from agents.slurm.mlflow_proxy import refusal
from tests.agents.slurm import nodes
from tests.agents.slurm.nodes import Node

pytestmark = [pytest.mark.more, pytest.mark.timeout(900)]
# The script of a user who knows nothing of clouds; the name of the experiment must be quoted in addresses.
SCRIPT = """
import mlflow, os
with mlflow.start_run(run_name="first") as run:
    mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_text("weights of a model", "notes/first file.txt")
    open("empty", "w").close()
    mlflow.log_artifact("empty")
assert run.info.artifact_uri.startswith("mlflow-artifacts:/")
(file,) = mlflow.artifacts.list_artifacts(run_id=run.info.run_id, artifact_path="notes")
assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/{file.path}") == "weights of a model"
client = mlflow.MlflowClient()
client.create_registered_model("words")
version = client.create_model_version("words", f"{run.info.artifact_uri}/notes", run.info.run_id)
assert [one.version for one in client.search_model_versions("name = 'words'")] == [version.version]
print(run.info.run_id)
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    yield from nodes.node(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def run(node: Node) -> str:
    """The run that a job recorded."""
    return _job(node.folder, node.url)


def _job(folder: Path, address: str) -> str:
    names = {"MLFLOW_TRACKING_URI": address, "MLFLOW_EXPERIMENT_NAME": "Vision's + Lab"}
    names["MLFLOW_HTTP_REQUEST_TIMEOUT"] = "300"
    plain = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**plain, **names}, cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_a_job_without_credentials_logs_a_run_with_artifacts(node: Node, run: str) -> None:
    found = node.get(f"runs/get?run_id={run}")["run"]
    assert found["data"]["metrics"][0]["value"] == 0.5
    named = node.get("experiments/get-by-name?experiment_name=Vision%27s%20%2B%20Lab")["experiment"]
    assert named["experiment_id"] == found["info"]["experiment_id"]
    folder = found["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    kept = node.account.file("out-bucket", f"mlflow/{folder}")
    assert {path.name for path in kept.rglob("*") if path.is_file()} == {"first file.txt", "empty"}


DELETIONS: dict[str, Callable[[str], tuple[str, dict[str, str]]]] = {
    "run": lambda run: ("runs/delete", {"run_id": run}),
    "experiment": lambda _: ("experiments/delete", {"experiment_id": "1"}),
    "name of an experiment": lambda _: ("experiments/update", {"experiment_id": "1", "new_name": "x"}),
    "tag": lambda run: ("runs/delete-tag", {"run_id": run, "key": "mlflow.runName"}),
    "name of a model": lambda _: ("registered-models/rename", {"name": "words", "new_name": "x"}),
}


@pytest.mark.parametrize("what", DELETIONS)
def test_a_hostile_job_deletes_and_renames_nothing(node: Node, run: str, what: str) -> None:
    path, body = DELETIONS[what](run)
    answer = requests.post(f"{node.url}/api/2.0/mlflow/{path}", json=body, timeout=60)
    assert (answer.status_code, answer.json()["error_code"]) == (403, "PERMISSION_DENIED")
    assert node.get(f"runs/get?run_id={run}")["run"]["info"]["lifecycle_stage"] == "active"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/2.0/mlflow-artifacts/artifacts/1/a"),
        ("DELETE", "/api/2.0/mlflow/registered-models/delete"),
        ("PUT", "/api/2.0/mlflow-artifacts/artifacts/../other"),
        ("PUT", "/api/2.0/mlflow-artifacts/artifacts/%2e%2e/other"),
        ("POST", "/api/2.0/mlflow/runs/%64elete"),
        ("POST", "/api/2.0/mlflow/users/create"),
        ("POST", "/graphql"),
        ("GET", "/api/3.0/mlflow/webhooks/list"),
    ],
)
def test_other_routes_are_refused(method: str, path: str) -> None:
    assert refusal(method, path) is not None


def test_a_role_that_lost_its_rights_is_a_failure_of_the_service_not_of_the_job(node: Node, run: str) -> None:
    node.account.role(nodes.FILES, trust={"Statement": []})
    answer = requests.get(f"{node.url}/api/2.0/mlflow/runs/get?run_id={run}", timeout=60)
    assert answer.status_code == 403
