"""A job of a real Slurm logs a run to a real MLflow through its node; without MLflow it runs nevertheless."""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import mlflow
import pytest

from infra.slurm import tracking
from rehearsal.slurm.cluster import LocalSlurm
from tests.agents.slurm import nodes
from tests.agents.slurm.nodes import Node
from tests.slurm import systems
from tests.slurm.test_jobs import ended

pytestmark = [pytest.mark.more, pytest.mark.timeout(900)]
JOB = """
import mlflow
with mlflow.start_run(run_name="first") as run:
    mlflow.log_metric("loss", 0.25)
    mlflow.log_text("weights of a model", "notes/first file.txt")
text = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/notes/first file.txt")
assert text == "weights of a model"
"""
Submit = Callable[[str], str]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    yield from nodes.node(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("node"))


@pytest.fixture
def submit(slurm: LocalSlurm, tmp_path: Path) -> Iterator[Submit]:
    """Run the script in a job of the team Applied ML, with MLflow at an address: its state, or the log."""
    given = systems.spec(pools={"a100": 4, "l4": 2, "cpu": 1})
    prolog = tracking.task_prolog(tracking.accounts_of(team.name for team in given.teams))
    (tmp_path / "job.py").write_text(JOB)

    def run(address: str) -> str:
        text = prolog.replace(tracking.ADDRESS, address)
        slurm.rewrite(lambda place: {**systems.files_22_05(given, place), tracking.PROLOG: text})
        command = f"{shlex.quote(sys.executable)} job.py"
        # As a shell whose variables are not those of the login node.
        options = ("-A", "applied-ml", "-p", "cpu", "--export=HOME,MLFLOW_HTTP_REQUEST_TIMEOUT=300")
        job = slurm.output("sbatch", "--parsable", *options, "--wrap", command, folder=tmp_path)
        state = ended(slurm, job, 400)
        return state if state == "COMPLETED" else (tmp_path / f"slurm-{job}.out").read_text()

    yield run
    slurm.rewrite(lambda place: systems.files_22_05(given, place))


def test_a_job_logs_into_the_experiment_of_its_team(node: Node, submit: Submit) -> None:
    assert submit(node.url) == "COMPLETED"
    found = node.get("experiments/get-by-name?experiment_name=Applied%20ML")["experiment"]
    (run,) = mlflow.MlflowClient(node.url).search_runs([found["experiment_id"]])
    assert run.data.metrics == {"loss": 0.25}


def test_a_dead_mlflow_stops_no_job_and_its_run_is_kept(submit: Submit, tmp_path: Path) -> None:
    assert submit("http://127.0.0.1:9") == "COMPLETED"
    (file,) = tmp_path.glob("mlflow-*.db")
    client = mlflow.MlflowClient(f"sqlite:///{file}")
    found = client.get_experiment_by_name("Applied ML")
    assert found is not None
    assert [run.data.metrics for run in client.search_runs([found.experiment_id])] == [{"loss": 0.25}]
