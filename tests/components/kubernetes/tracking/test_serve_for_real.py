"""The main program with a real MLflow server behind it and moto's Secrets Manager beside it, over HTTP."""

import base64
import importlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from moto.server import ThreadedMotoServer

from components.aws.tracking import secret_store
from components.kubernetes.tracking import serve
from components.kubernetes.tracking.pod import allowed_hosts

REGION = "eu-central-1"


@dataclass
class Server:
    """A running tracking server and what a test needs to know about it."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path
    user: str
    password: str
    session_key: str

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        user: tuple[str, str] | None = None,
        host: str | None = None,
    ) -> tuple[int, Any]:
        """Status and answer of a request; `user` is the admin unless given, ("", "") is none."""
        name, password = user or (self.user, self.password)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if name:
            token = base64.b64encode(f"{name}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        if host:
            request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()


def wait_until_healthy(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tracking")
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    address, moto_port = moto.get_host_and_port()
    endpoint = f"http://{address}:{moto_port}"
    boto3: Any = importlib.import_module("boto3")  # has no types
    secrets = boto3.client(
        "secretsmanager",
        region_name=REGION,
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    admin_arn = secrets.create_secret(Name="admin")["ARN"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    database = {"username": "tracking", "password": "p@ss/word"}
    database_arn = secrets.create_secret(Name="database", SecretString=json.dumps(database))["ARN"]
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WORKERS": "1",
        "ALLOWED_HOSTS": allowed_hosts("mlflow"),
        "ARTIFACTS_DESTINATION": str(folder / "artifacts"),
        "ADMIN_SECRET": admin_arn,
        "DATABASE_SECRET": database_arn,
        "DATABASE_URI": f"sqlite:///{folder}/{{username}}.db",
    }
    # The two files of the ConfigMap, alone in their folder.
    program = folder / "mounted" / "serve.py"
    program.parent.mkdir()
    program.write_text(Path(serve.__file__).read_text())
    program.with_name("secret_store.py").write_text(Path(secret_store.__file__).read_text())
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(program)], env=environment, stdout=out, stderr=out, cwd=folder
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(process, url, log)
        admin = json.loads(secrets.get_secret_value(SecretId=admin_arn)["SecretString"])
        yield Server(url, process, log, admin["username"], admin["password"], admin["session_key"])
    finally:
        process.terminate()
        code = process.wait(timeout=30)
        moto.stop()
    assert code == 0
    assert not psutil.pid_exists(process.pid)


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


def test_no_secret_on_a_command_line_or_in_the_log(server: Server) -> None:
    everybody = [psutil.Process(server.process.pid)]
    everybody += everybody[0].children(recursive=True)
    assert len(everybody) >= 3, "the program, the server and its worker"
    lines = "\n".join(" ".join(process.cmdline()) for process in everybody)
    logged = lines + server.log.read_text()
    for secret in (server.password, server.session_key, "p@ss/word", "p%40ss%2Fword"):
        assert secret not in logged


def test_users_and_runs_share_the_database_the_secret_named(server: Server) -> None:
    with sqlite3.connect(server.log.parent / "tracking.db") as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    # Two histories of migrations that do not touch each other.
    assert {"alembic_version", "alembic_version_auth", "runs", "users"} <= tables
    assert re.search(r"Created admin user", server.log.read_text())
