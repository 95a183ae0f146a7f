import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.entities import Run
from werkzeug.security import generate_password_hash

from smoke_training import cli, evidence
from smoke_training.evidence.world import Lookup
from smoke_training.judges.run.baseline import fingerprint
from smoke_training.names import EXPERIMENT
from smoke_training.record import fields, run_record, tracking
from smoke_training.record.mlflow import connect
from smoke_training.statistics import baseline
from tests.smoke_training import results
from tests.smoke_training.samples import lines, parsed, plan

USER, PASSWORD = "admin", "a-long-password-1"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
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
            _checked_quickly(home / "auth.db")
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, 15)
            process.wait(timeout=20)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(2400):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def _checked_quickly(users: Path) -> None:
    """Each request is checked against the password's hash; the server's own takes 50 ms of a processor."""
    hashed = generate_password_hash(PASSWORD, "pbkdf2:sha256:1")
    with contextlib.closing(sqlite3.connect(users)) as database, database:
        assert database.execute("UPDATE users SET password_hash = ?", (hashed,)).rowcount == 1


def variables(address: str, **others: str) -> dict[str, str]:
    return {
        "MLFLOW_TRACKING_URI": address,
        "MLFLOW_TRACKING_USERNAME": USER,
        "MLFLOW_TRACKING_PASSWORD": PASSWORD,
        **others,
    }


def recorded(
    address: str, result: dict[str, Any], items: list[dict[str, Any]], **others: str
) -> dict[str, Any]:
    return tracking.record(result, parsed(items), variables(address, **others), time.monotonic() + 60)


@pytest.fixture
def client(address: str, monkeypatch: pytest.MonkeyPatch) -> mlflow.MlflowClient:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", USER)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    return mlflow.MlflowClient(address)


def found(client: mlflow.MlflowClient, outcome: dict[str, object]) -> Run:
    assert outcome["synced"] is True, outcome
    return client.get_run(str(outcome["run_id"]))


SYSTEM = {
    "kind": "system", "node": 1, "names": ["cpu_utilization_percentage", "gpu_0_power_usage_watts"],
    "at_ms": [1000, 3000], "values": [[40.0, None], [60.5, 300.0]], "gpu_reason": None,
}  # fmt: skip


def test_a_run_carries_the_mandatory_record(client: mlflow.MlflowClient, address: str) -> None:
    result = results.result(lines(), "0" * 16)
    outcome = recorded(address, result, [*lines(), SYSTEM])
    run = found(client, outcome)
    assert client.get_experiment(run.info.experiment_id).name == "smoke-validation"
    tags = run.data.tags
    assert (tags["owner"], tags["team"], tags["task"], tags["dataset"], tags["status"]) == (
        "platform", "research", "deploy-validation", "synthetic", result["verdict"],
    )  # fmt: skip
    for name in (
        "stack", "env", "profile", "cloud", "region", "instance_type", "nodes", "gpus_per_node", "fabric",
        "image_digest", "git_sha", "deploy_id", "schema_version", "verdict", "owner", "cost_center",
    ):  # fmt: skip
        assert tags[f"trainstack.{name}"], name
    assert tags["trainstack.deploy_id"] == "unknown"
    assert tags["trainstack.recorded"] == result["run_id"]
    assert run.data.params["threshold.training.scaling_efficiency"] == "0.8 (declared: the run plan)"
    assert run.data.params["zone.training.straggler"].startswith("1.05 .. ")
    assert (run.data.params["torch"], run.data.params["driver"]) == ("2.13.0", "unknown")
    assert run.data.metrics["cost.estimated_usd"] == pytest.approx(43.9 * 21.5 / 3600)
    assert run.data.metrics["resources.cpu_seconds"] == 8.0
    assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == [3.0, 2.5]


def test_nodes_log_system_metrics_under_mlflows_own_keys(client: mlflow.MlflowClient, address: str) -> None:
    run = found(client, recorded(address, results.passed(run_id="5" * 16), [*lines(), SYSTEM]))
    points = client.get_metric_history(run.info.run_id, "system/node_1/cpu_utilization_percentage")
    assert [(p.step, p.timestamp, p.value) for p in points] == [(0, 1000, 40.0), (1, 3000, 60.5)]
    assert run.data.metrics["system/node_1/gpu_0_power_usage_watts"] == 300.0


def test_a_failed_run_is_there_as_failed(client: mlflow.MlflowClient, address: str) -> None:
    items = lines(slowdown=2)
    run = found(client, recorded(address, results.result(items, "1" * 16), items))
    assert (run.info.status, run.data.tags["status"]) == ("FAILED", "FAIL")
    assert "rank 1" in run.data.tags["mlflow.note.content"]
    assert run.data.tags["trainstack.accepted"] == "false"
    assert "trainstack.baseline" not in run.data.tags


def test_an_error_without_any_evidence_is_there_as_failed(client: mlflow.MlflowClient, address: str) -> None:
    run = found(client, recorded(address, results.result([], "2" * 16), []))
    assert run.data.tags["trainstack.verdict"] == "ERROR"


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
    address: str, environment: dict[str, str], reason: str
) -> None:
    outcome = recorded(address, results.passed(run_id="3" * 16), lines(), **environment)
    assert outcome["synced"] is False
    assert reason in str(outcome["reason"])


@contextlib.contextmanager
def dribbling() -> Iterator[str]:
    """A server that answers one byte a second, so that no read ever times out."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                    while not ended.wait(0.2):
                        connection.sendall(b" ")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            ended.set()


def test_a_server_that_answers_byte_by_byte_is_left_in_time() -> None:
    with dribbling() as slow:
        began = time.monotonic()
        outcome = tracking.record(results.passed(), parsed(lines()), variables(slow), began + 1.0)
        assert time.monotonic() - began < 2.5
    assert outcome["synced"] is False
    assert "within 1 s" in str(outcome["reason"])


def test_recording_again_completes_and_repeats_nothing(client: mlflow.MlflowClient, address: str) -> None:
    result = results.passed(run_id="4" * 16)
    server = connect(variables(address), 30)
    experiment = server.experiment(EXPERIMENT)
    cut = server.create_run(experiment, "cut off", 0, fields.tags(result))  # the launcher died here
    first = recorded(address, result, lines())
    client.set_tag(cut.id, "trainstack.accepted", "a person's answer")
    second = recorded(address, result, lines())
    assert first["run_id"] == second["run_id"] == cut.id
    run = found(client, second)
    assert run.info.status == "FINISHED"
    assert run.data.tags["trainstack.accepted"] == "a person's answer"
    assert len(client.get_metric_history(run.info.run_id, results.RATE)) == 1
    assert len(server.search(experiment, {fields.RUN_ID: "4" * 16}, 5)) == 1


def test_an_existing_run_is_used(client: mlflow.MlflowClient, address: str) -> None:
    made = client.create_run(client.create_experiment("nightly"))
    outcome = recorded(address, results.passed(run_id="6" * 16), lines(), MLFLOW_RUN_ID=made.info.run_id)
    assert found(client, outcome).info.run_id == made.info.run_id


def published(address: str, folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    samples = [json.dumps(item) for item in lines()]
    path = folder / f"{result['run_id']}.json"
    return run_record.publish(result, samples, path, variables(address), time.monotonic() + 60)


def test_everything_of_a_run_is_kept_with_its_digest(
    client: mlflow.MlflowClient, address: str, tmp_path: Path
) -> None:
    final = published(address, tmp_path, results.passed(run_id="7" * 16))
    run = final["mlflow"]["run_id"]
    names = {item.path for item in client.list_artifacts(run)}
    assert names == {"result.json", "samples.jsonl.gz", "summary.html", "baseline.json"}
    kept = tmp_path / f"{'7' * 16}.json"
    assert json.loads(kept.read_text())["mlflow"] == {"synced": True, "run_id": run, "reason": None}
    listed = {item["name"]: item["sha256"] for item in final["artifacts"]}
    assert all(listed.values())
    page = Path(client.download_artifacts(run, "summary.html", str(tmp_path)))
    assert page.read_bytes() == kept.with_suffix(".html").read_bytes()
    offered = baseline.parse(json.loads(kept.with_suffix(".baseline.json").read_text()))
    assert offered.figures[results.RATE].value == 1.0


def looked_up(address: str, stack: str, **changes: Any) -> dict[str, Any]:
    own = fingerprint(plan(stack=stack, network_gbit_s=8.0, **changes), parsed(lines()))
    assert own is not None
    line = evidence.line_of(tracking.find(stack, own, variables(address), 20))
    found_ = evidence.parse([line])
    assert found_.of(Lookup) is not None, found_.unreadable
    document: dict[str, Any] = json.loads(line)
    return document


def test_the_last_accepted_run_alike_is_found_and_no_other(address: str) -> None:
    accepted = results.passed(1.0, run_id="a" * 16, stack="one")
    recorded(address, accepted, lines())
    failed = results.result(lines(slowdown=2), "b" * 16, stack="one", network_gbit_s=8.0)
    recorded(address, failed, lines())
    recorded(address, results.passed(2.0, run_id="c" * 16, stack="other"), lines())
    last = results.passed(3.0, run_id="d" * 16, minute=1, stack="one", image="x@sha256:1")
    recorded(address, last, lines())
    partial = results.passed(4.0, run_id="e" * 16, stack="one", phases=["world"])
    recorded(address, partial, lines())
    line = looked_up(address, "one")
    assert line["document"]["run_id"] == "a" * 16
    assert line["document"]["history"] == {results.RATE: [1.0]}
    assert "stack empty" in looked_up(address, "empty")["reason"]
    assert "y@sha256:2, the baseline" in looked_up(address, "one", image="y@sha256:2")["reason"]


def test_a_regressed_run_is_no_baseline_until_it_is_accepted(
    client: mlflow.MlflowClient, address: str
) -> None:
    stack = "slide"
    recorded(address, results.passed(1.0, run_id="0a" * 8, stack=stack), lines())
    before = looked_up(address, stack)["document"]
    worse = results.passed(0.8, run_id="0b" * 8, minute=1, stack=stack, baseline=before)
    assert (worse["verdict"], worse["regression"], worse["regressed"]) == ("PASS", True, [results.RATE])
    assert worse["baseline"] == {"accepted": False, "reason": f"the run has regressed: {results.RATE}"}
    run = found(client, recorded(address, worse, lines()))
    assert run.data.tags["trainstack.regression"] == "true"
    assert looked_up(address, stack)["document"] == before
    client.set_tag(run.info.run_id, "trainstack.accepted", "true")
    after = looked_up(address, stack)["document"]
    assert (after["run_id"], after["history"]) == ("0b" * 8, {results.RATE: [0.8]})


def test_without_a_tracking_server_there_is_no_baseline_and_the_reason_is_said() -> None:
    own = fingerprint(plan(), parsed(lines()))
    assert own is not None
    line = tracking.find("one", own, variables("http://127.0.0.1:9"), 5)
    assert line.document is None
    assert str(line.reason).startswith("tracking unreachable: ")
    with dribbling() as slow:
        began = time.monotonic()
        assert "unreachable" in str(tracking.find("one", own, variables(slow), 0.5).reason)
        assert time.monotonic() - began < 2


def test_replay_records_what_an_outage_kept_away(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    final = published("http://127.0.0.1:9", tmp_path, results.passed(run_id="8" * 16))
    assert final["mlflow"]["synced"] is False
    path = tmp_path / f"{'8' * 16}.json"
    assert cli.main(["replay", str(path)]) == 3
    assert "MLFLOW_TRACKING_URI" in capsys.readouterr().err
    for key, value in variables(address).items():
        monkeypatch.setenv(key, value)
    assert cli.main(["replay", str(path)]) == 0
    after = json.loads(path.read_text())
    assert after["mlflow"]["synced"] is True
    assert {**after, "mlflow": None} == {**final, "mlflow": None}
    assert cli.main(["replay", str(path)]) == 0
    assert "recorded before" in capsys.readouterr().out
