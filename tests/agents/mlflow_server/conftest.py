"""The main program with a real MLflow server behind it and moto's Secrets Manager beside it."""

import base64
import importlib
import json
import os
import socket
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

from agents.aws.mlflow_server import secret_store
from agents.mlflow_server import serve
from components.kubernetes.tracking.pod import DoorArgs, accepted

REGION = "eu-central-1"
DOOR: DoorArgs = {
    "host": "mlflow.example.com",
    "node_port": 30050,
    "cidrs": ["10.0.192.0/22", "10.0.196.0/22"],
    "node_labels": {"pool": "system"},
}


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
        *,
        host: str | None = None,
        origin: str | None = None,
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
        if origin:
            request.add_header("Origin", origin)
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


@pytest.fixture(scope="session")
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
        **accepted("mlflow", DOOR),
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
