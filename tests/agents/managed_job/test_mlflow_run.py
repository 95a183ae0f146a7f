"""The run of a job in MLflow: a real store, a real server, and servers that do not answer."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from agents.managed_job import mlflow_run
from agents.managed_job.mlflow_run import MlflowRun
from tests.agents.managed_job.conftest import Make
from tests.agents.managed_job.managed import SUBMITTED, Managed
from tests.agents.managed_job.tracking import server

# Logs by mlflow's own calls, which find the run by themselves; then waits for what the test wants to see.
SCRIPT = """
import os, signal, sys, mlflow
first = int(sys.argv[1])
for step in range(first, first + 3):
    mlflow.log_metric("loss", 1.0 / (1 + step), step=step)
if first == 0:
    print("ready", flush=True)
    signal.pause()
"""


def variables(store: MlflowClient, experiment: str) -> dict[str, str]:
    return {
        "MLFLOW_TRACKING_URI": store.tracking_uri,
        "MLFLOW_EXPERIMENT_NAME": experiment,
        "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "1",
    }


@pytest.fixture
def experiment(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def only_run(store: MlflowClient, experiment: str) -> Run:
    found = store.get_experiment_by_name(experiment)
    assert found is not None
    (run,) = store.search_runs([found.experiment_id])
    return run


def test_a_killed_run_goes_on_as_the_same_run(job: Make, store: MlflowClient, experiment: str) -> None:
    made = job(SCRIPT, TRAINSTACK_IMAGE="image@sha256:1", **variables(store, experiment))
    node = made.start(["0"])
    node.line("ready")
    node.kill()
    run = only_run(store, experiment)
    assert run.info.status == "RUNNING" and run.data.tags["trainstack.interruptions"] == "0"

    code, said = made.run("3")
    assert code == 0, said
    again = only_run(store, experiment)
    assert again.info.run_id == run.info.run_id == made.document()["mlflow"]["run_id"]
    assert again.info.status == "FINISHED" and again.data.tags["trainstack.interruptions"] == "1"
    history = store.get_metric_history(run.info.run_id, "loss")
    assert [point.step for point in history] == list(range(6))
    assert again.data.params["arguments"] == "0", "MLflow never changes a parameter"
    (problem,) = made.document()["mlflow"]["problems"]
    assert problem.endswith(": arguments")


def test_a_deleted_run_begins_anew(job: Make, store: MlflowClient, experiment: str) -> None:
    made = job("print('done')", **variables(store, experiment))
    made.run()
    first = only_run(store, experiment).info.run_id
    store.delete_run(first)
    assert made.run()[0] == 0
    assert only_run(store, experiment).info.run_id != first and made.document()["mlflow"]["recorded"] is True


def test_a_run_carries_what_it_takes_to_repeat_and_pay_it(
    job: Make, store: MlflowClient, experiment: str
) -> None:
    made = job("print('done')", TRAINSTACK_IMAGE="image@sha256:1", **variables(store, experiment))
    code, said = made.run("--lr", "3e-4")
    assert code == 0, said
    run, document = only_run(store, experiment), made.document()
    tags = run.data.tags
    for name in ("owner", "team", "task", "dataset"):
        assert tags[name] == SUBMITTED[f"TRAINSTACK_{name.upper()}"]
    assert tags["trainstack.code_version"] == SUBMITTED["TRAINSTACK_CODE_VERSION"]
    assert tags["trainstack.image_digest"] == "image@sha256:1"
    assert tags["trainstack.instance_type"] == "ml.g6.xlarge"
    assert tags["trainstack.job"] == "small-aws-anna-1"
    assert tags["trainstack.torch"].startswith("2.") and tags["trainstack.gpu"] == "none"
    assert "trainstack.incomplete" not in tags
    assert run.data.params == {"lr": "3e-4", "nodes": "1", "gpus_per_node": "0"}
    assert run.data.metrics["job/cost_usd"] == pytest.approx(document["cost_usd"])
    assert run.data.metrics["job/duration_seconds"] == pytest.approx(document["duration_s"])
    assert run.info.run_name == "run-1"
    assert document["mlflow"] == {"run_id": run.info.run_id, "recorded": True, "problems": []}


def test_a_run_without_owner_is_marked_and_the_machine_is_sampled(
    job: Make, store: MlflowClient, experiment: str
) -> None:
    text = """
import os, time
from mlflow import MlflowClient
client, limit = MlflowClient(), time.monotonic() + 60
while "system/cpu_utilization_percentage" not in client.get_run(os.environ["MLFLOW_RUN_ID"]).data.metrics:
    assert time.monotonic() < limit
    time.sleep(0.05)
"""
    made = job(text, TRAINSTACK_OWNER="", **variables(store, experiment))
    code, said = made.run()
    assert code == 0, said
    run = only_run(store, experiment)
    assert run.data.tags["trainstack.incomplete"] == "owner" and run.data.tags["owner"] == "unknown"
    assert run.data.metrics["system/cpu_utilization_percentage"] >= 0


@pytest.mark.parametrize(("text", "status"), [("raise ValueError('no')", "FAILED"), ("", "FINISHED")])
def test_the_status_is_how_the_script_ended(
    job: Make, store: MlflowClient, experiment: str, text: str, status: str
) -> None:
    job(text, **variables(store, experiment)).run()
    run = only_run(store, experiment)
    assert run.info.status == run.data.tags["status"] == status
    assert ("ValueError: no" in run.data.tags["trainstack.reason"]) is (status == "FAILED")


def test_a_stopped_run_is_killed(job: Make, store: MlflowClient, experiment: str) -> None:
    made = job(SCRIPT, **variables(store, experiment))
    node = made.start(["0"])
    node.line("ready")
    node.terminate()
    assert node.finish()[0] == 128 + signal.SIGTERM
    assert only_run(store, experiment).info.status == "KILLED"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


QUICK = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}


def test_a_server_that_is_silent_costs_a_line_and_leads_the_script_elsewhere(job: Make, silent: str) -> None:
    text = "import os; print('uri', os.environ['MLFLOW_TRACKING_URI'], os.environ['MLFLOW_RUN_ID'])"
    made = job(text, MLFLOW_TRACKING_URI=silent, **QUICK)
    code, said = made.run()
    assert code == 0, said
    assert "trainstack: MLflow: " in said
    assert f"uri sqlite:///{made.base()}/output/data/mlflow.db" in said
    found = made.document()["mlflow"]
    assert found["recorded"] is False and found["run_id"] is None and found["problems"]


def test_a_stop_before_the_script_began_takes_effect(job: Make, silent: str) -> None:
    made = job("print('never')", MLFLOW_TRACKING_URI=silent, **QUICK)
    node = made.start()
    node.line("trainstack: node 1 of 1")
    node.terminate()
    code, said = node.finish()
    assert code == 128 + signal.SIGTERM and "never" not in said
    assert made.document()["status"] == "KILLED"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a record changes in its process, which is a wrapper's own, does not outlive a test."""
    for name, value in {**QUICK, "MLFLOW_TRACKING_URI": ""}.items():
        monkeypatch.setenv(name, value)
    yield
    mlflow.set_tracking_uri("")


@pytest.mark.usefixtures("alone")
def test_no_call_lasts_longer_than_its_bound(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_run, "OPEN_S", 0.2)
    said: list[str] = []
    record = MlflowRun({"MLFLOW_TRACKING_URI": silent}, said.append)
    began = time.monotonic()
    record.open(None, "run-1", {}, {})
    assert time.monotonic() - began < 5.0
    assert len(said) == 1 and "not begun" in said[0]
    assert record.run_id is None


def test_an_outage_in_the_middle_costs_the_end_of_the_record(job: Make, tmp_path: Path) -> None:
    text = "import sys; print('ready', flush=True); sys.stdin.readline(); print('trained')"
    made: Managed
    with server(tmp_path) as (address, process):
        made = job(text, MLFLOW_TRACKING_URI=address, **QUICK)
        read, write = os.pipe()
        node = made.start(stdin=read)
        node.line("ready")
        run = MlflowClient(address).get_run(made.document()["mlflow"]["run_id"])
        assert run.info.status == "RUNNING" and run.data.tags["owner"] == "anna"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.write(write, b"\n")
    code, said = node.finish()
    assert code == 0 and "trained" in said and "not ended" in said
    document = made.document()
    assert document["status"] == "FINISHED" and document["mlflow"]["recorded"] is False
    assert document["mlflow"]["run_id"] == run.info.run_id, "who wants to can end it by hand"


def test_a_script_with_an_experiment_of_its_own_records_there(
    job: Make, store: MlflowClient, experiment: str
) -> None:
    text = f"""
import mlflow
mlflow.set_experiment("{experiment} of the script")
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5)
"""
    made = job(text, **variables(store, experiment))
    code, said = made.run()
    assert code == 0, said
    run, own = only_run(store, experiment), only_run(store, f"{experiment} of the script")
    assert (run.info.status, own.info.status) == ("FINISHED", "FINISHED")
    assert own.data.metrics == {"loss": 0.5} and "loss" not in run.data.metrics
    shared = ("owner", "team", "dataset", "trainstack.run", "trainstack.code_version")
    assert {name: own.data.tags[name] for name in shared} == {name: run.data.tags[name] for name in shared}


def test_a_script_that_sets_the_experiment_of_the_job_records_into_its_run(
    job: Make, store: MlflowClient, experiment: str
) -> None:
    text = """
import mlflow, os
mlflow.set_experiment(os.environ["MLFLOW_EXPERIMENT_NAME"])
with mlflow.start_run():
    mlflow.log_metric("loss", 0.5)
"""
    code, said = job(text, **variables(store, experiment)).run()
    assert code == 0, said
    assert only_run(store, experiment).data.metrics["loss"] == 0.5


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("import mlflow\n# mlflow.set_experiment('x')\n", False),
        ("import mlflow\ntext = \"mlflow.set_experiment('x')\"\n", False),
        ("import mlflow as ml\nml.set_experiment('x')\n", True),
        ("import mlflow.pytorch\nmlflow.set_experiment(\n    name()\n)\n", True),
        ("from mlflow import set_experiment as choose\nchoose('x')\n", True),
        ("import other\nother.set_experiment('x')\n", False),
        ("import mlflow\nmlflow.set_experiment('x'\n", False),
    ],
)
def test_only_a_call_of_mlflow_sets_an_experiment(tmp_path: Path, text: str, apart: bool) -> None:
    (tmp_path / "train.py").write_text(text)
    run = MlflowRun({"MLFLOW_TRACKING_URI": "http://unused"}, lambda _: None)
    run._opened, run.run_id = True, "1"
    assert ("MLFLOW_RUN_ID" not in run.variables("", tmp_path)) is apart
