"""The main program with a real MLflow server behind it, over HTTP."""

import re
import sqlite3

import psutil
import pytest

from tests.agents.mlflow_server.conftest import DOOR, Server


def test_admin_logs_a_run_with_parameters_metrics_and_artifacts(server: Server) -> None:
    status, made = server.ask("POST", "/api/2.0/mlflow/experiments/create", {"name": "smoke"})
    assert status == 200, made
    started = {"experiment_id": made["experiment_id"], "start_time": 1, "run_name": "first"}
    status, run = server.ask("POST", "/api/2.0/mlflow/runs/create", started)
    assert status == 200, run
    run_id = run["run"]["info"]["run_id"]
    batch = {
        "run_id": run_id,
        "params": [{"key": "lr", "value": "0.1"}],
        "metrics": [{"key": "loss", "value": 1.0 / step, "timestamp": step, "step": step} for step in (1, 2)],
        "tags": [{"key": "team", "value": "vision"}],
    }
    assert server.ask("POST", "/api/2.0/mlflow/runs/log-batch", batch)[0] == 200
    root = run["run"]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    artifact = f"/api/2.0/mlflow-artifacts/artifacts/{root.lstrip('/')}/result.json"
    assert server.ask("PUT", artifact, b'{"verdict": "PASS"}')[0] == 200
    status, back = server.ask("GET", f"/api/2.0/mlflow/runs/get?run_id={run_id}")
    assert status == 200
    assert back["run"]["data"]["params"] == [{"key": "lr", "value": "0.1"}]
    assert back["run"]["data"]["metrics"][0]["value"] == 0.5
    assert server.ask("GET", artifact) == (200, {"verdict": "PASS"})


@pytest.mark.parametrize("user", [("", ""), ("admin", "wrong-password"), ("admin", "password1234")])
def test_no_other_user_gets_in(server: Server, user: tuple[str, str]) -> None:
    search = {"max_results": 1}
    status, _ = server.ask("POST", "/api/2.0/mlflow/experiments/search", search, user=user)
    assert status == 401


def test_new_user_sees_nothing_until_it_is_granted(server: Server) -> None:
    status, made = server.ask("POST", "/api/2.0/mlflow/experiments/create", {"name": "private"})
    assert status == 200, made
    newcomer = ("newcomer", "a-long-enough-password")
    credentials = dict(zip(("username", "password"), newcomer, strict=True))
    assert server.ask("POST", "/api/2.0/mlflow/users/create", credentials)[0] == 200
    read = f"/api/2.0/mlflow/experiments/get?experiment_id={made['experiment_id']}"
    assert server.ask("GET", read, user=newcomer)[0] == 403
    assert server.ask("GET", read)[0] == 200


def test_only_known_host_names_are_answered(server: Server) -> None:
    read = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"
    assert server.ask("GET", read, host="mlflow.mlflow.svc.cluster.local:5000")[0] == 200
    status, text = server.ask("GET", read, host="evil.example.com:5000")
    assert (status, "Invalid Host header" in text) == (403, True)
    # The kubelet asks by the address of the pod.
    assert server.ask("GET", "/health", user=("", ""), host="10.1.2.3:5000")[0] == 200


def test_a_page_that_came_through_the_door_may_change_what_its_user_may(server: Server) -> None:
    host = DOOR["host"]

    def search(origin: str, user: tuple[str, str] | None = None) -> int:
        path = "/ajax-api/2.0/mlflow/experiments/search"
        return server.ask("POST", path, {"max_results": 1}, user, host=host, origin=origin)[0]

    assert search(f"https://{host}") == 200
    assert search(f"https://{host}", ("", "")) == 401
    assert search("https://evil.example.com") == search(f"http://{host}") == 403


def test_no_secret_on_a_command_line_or_in_the_log(server: Server) -> None:
    everybody = [psutil.Process(server.process.pid)]
    everybody += everybody[0].children(recursive=True)
    assert len(everybody) >= 3, "the program, the server and its worker"
    lines = "\n".join(" ".join(process.cmdline()) for process in everybody)
    logged = lines + server.log.read_text()
    assert server.password not in logged


def test_users_and_runs_share_the_database(server: Server) -> None:
    with sqlite3.connect(server.log.parent / "tracking.db") as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    # Two histories of migrations that do not touch each other.
    assert {"alembic_version", "alembic_version_auth", "runs", "users"} <= tables
    assert re.search(r"Created admin user", server.log.read_text())
