import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Run

from smoke_training import verdict
from smoke_training.record import document, sink
from tests.smoke_training.samples import CPU, lines, parsed, plan

WHEN = document.Circumstances(
    run_id="0123456789abcdef", started="2026-11-21T12:00:00+00:00", duration_s=21.5, python="3.11.7",
    kernel="6.1", code_sha256="00", environment_sha256="11",
)  # fmt: skip
USER, PASSWORD = "admin", "a-long-password-1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server with basic auth, an SQLite store and proxied artifacts."""
    home = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "auth.ini").write_text(
        f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{home}/auth.db\n"
        f"admin_username = {USER}\nadmin_password = {PASSWORD}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    command = [
        sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth", "--host", "127.0.0.1", "--port",
        str(port), "--workers", "1", "--backend-store-uri", f"sqlite:///{home}/mlflow.db",
        "--artifacts-destination", str(home / "artifacts"),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "MLFLOW_AUTH_CONFIG_PATH": str(home / "auth.ini"),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "x",
        # Seven idle job consumers would compete with the measurements of other tests.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait(f"http://127.0.0.1:{port}/health", process, home / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, 15)
            process.wait(timeout=20)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def recorded(
    server: str, items: list[dict[str, Any]], **environment: str
) -> tuple[dict[str, object], dict[str, Any]]:
    evidence = parsed(items)
    judged = verdict.judge(plan(git_sha="abc123"), CPU, evidence)
    result = document.build(plan(git_sha="abc123"), CPU, evidence, judged, WHEN)
    variables = {
        "MLFLOW_TRACKING_URI": server,
        "MLFLOW_TRACKING_USERNAME": USER,
        "MLFLOW_TRACKING_PASSWORD": PASSWORD,
        **environment,
    }
    return sink.record(result, evidence, variables, time.monotonic() + 60), result


@pytest.fixture
def client(server: str, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", USER)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    return mlflow.MlflowClient(server)


def found(client: mlflow.MlflowClient, outcome: dict[str, object]) -> Run:
    assert outcome["synced"] is True, outcome
    return client.get_run(str(outcome["run_id"]))


def test_a_passed_run_carries_the_mandatory_record(
    client: mlflow.MlflowClient, server: str, tmp_path: Path
) -> None:
    outcome, _ = recorded(server, lines())
    run = found(client, outcome)
    assert client.get_experiment(run.info.experiment_id).name == "smoke-validation"
    assert run.info.status == "FINISHED"
    tags = run.data.tags
    assert (tags["owner"], tags["team"], tags["task"], tags["dataset"], tags["status"]) == (
        "platform", "research", "deploy-validation", "synthetic", "PASS",
    )  # fmt: skip
    for name in (
        "stack", "env", "profile", "cloud", "region", "instance_type", "nodes", "gpus_per_node", "fabric",
        "image_digest", "git_sha", "deploy_id", "schema_version", "verdict", "owner", "cost_center",
    ):  # fmt: skip
        assert tags[f"trainstack.{name}"], name
    assert tags["trainstack.deploy_id"] == "unknown"
    assert run.data.params["threshold.scaling_efficiency"] == "0.8 (run plan)"
    assert run.data.params["torch"] == "2.13.0"
    assert run.data.metrics["cost.estimated_usd"] == pytest.approx(43.9 * 21.5 / 3600)
    assert run.data.metrics["resources.cpu_seconds"] == 8.0
    assert len(client.get_metric_history(run.info.run_id, "step_time_s")) == 80
    assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == [3.0, 2.5]
    assert {m.step for m in client.get_metric_history(run.info.run_id, "all_reduce_busbw_gb_s")} == {
        1024,
        1 << 20,
    }
    path = client.download_artifacts(run.info.run_id, "result.json", str(tmp_path))
    assert '"verdict": "PASS"' in Path(path).read_text()


def test_a_failed_run_is_there_as_failed(client: mlflow.MlflowClient, server: str) -> None:
    outcome, _ = recorded(server, lines(slowdown=2))
    run = found(client, outcome)
    assert (run.info.status, run.data.tags["status"]) == ("FAILED", "FAIL")
    assert "suspect rank 1" in run.data.tags["mlflow.note.content"]


def test_an_error_without_any_evidence_is_there_as_failed(client: mlflow.MlflowClient, server: str) -> None:
    outcome, _ = recorded(server, [])
    assert found(client, outcome).data.tags["trainstack.verdict"] == "ERROR"


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"MLFLOW_TRACKING_PASSWORD": "wrong-password"}, "401"),
        ({"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}, "refused"),
        ({"MLFLOW_TRACKING_URI": "file:///tmp/x"}, "must be an http or https address"),
        ({"MLFLOW_TRACKING_URI": ""}, "not set"),
        (
            {"MLFLOW_CREDENTIALS_SECRET_ARN": "arn:x", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
            "credentials arn:x",
        ),
    ],
)
def test_an_outage_is_written_down_and_raises_nothing(
    server: str, environment: dict[str, str], reason: str
) -> None:
    outcome, _ = recorded(server, lines(), **environment)
    assert outcome["synced"] is False
    assert reason in str(outcome["reason"])
