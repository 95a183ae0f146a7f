"""The main program with a real MLflow server behind it and moto's Secrets Manager beside it."""

import base64
import contextlib
import importlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from moto.server import ThreadedMotoServer

from agents.aws.mlflow_server import secret_store
from agents.mlflow_server import schema_job, serve
from components.kubernetes.tracking.pod import DoorArgs, accepted, program

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

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        user: tuple[str, str] | None = None,
        *,
        host: str | None = None,
        origin: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Status and answer of a request; `user` is the admin unless given, ("", "") is none."""
        name, password = user or (self.user, self.password)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        for key, value in (headers or {}).items():
            request.add_header(key, value)
        if name:
            token = base64.b64encode(f"{name}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        if host:
            request.add_header("Host", host)
        if origin:
            request.add_header("Origin", origin)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()


def wait_until_healthy(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 280
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])


@dataclass
class Installed:
    """The programs as the ConfigMap mounts them, with secrets of a cloud that moto emulates."""

    folder: Path
    environment: dict[str, str]
    secrets: Any
    admin_secret: str

    def run(self, module: str, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a program; its output is in the file `log`."""
        with self.log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=self.environment,
                stdout=out,
                stderr=out,
                cwd=self.folder / "mounted",
            )

    def arguments(self, message: Path) -> list[str]:
        """Arguments of the program of the Job, with the file of its message."""
        arguments = {
            "stage": "tables",
            "namespace": "mlflow", "deployment": "mlflow", "replicas": "2", "seconds": "60",
            "administrator": self.admin_secret, "database": "", "account": str(self.folder),
            "message": str(message),
        }  # fmt: skip
        return [word for key, value in arguments.items() for word in (f"--{key}", value)]

    def upgrade(self) -> tuple[int, str]:
        """Run the program of the Job; returns its exit code and its message."""
        message = self.folder / "message"
        code = self.run(schema_job.__name__, *self.arguments(message)).wait(timeout=280)
        assert message.exists(), self.log.read_text()[-3000:]
        return code, message.read_text()

    @property
    def log(self) -> Path:
        return self.folder / "log"


@contextlib.contextmanager
def installed(folder: Path) -> Iterator[Installed]:
    """Programs, secrets and environment for a server with a database in `folder`."""
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
    admin = secrets.create_secret(Name=f"admin-{uuid.uuid4().hex}")["ARN"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "WORKERS": "1",
        **accepted("mlflow", DOOR),
        "ARTIFACTS_DESTINATION": str(folder / "artifacts"),
        "DATABASE_URI": f"sqlite:///{folder}/tracking.db",
    }
    for module, text in program(serve.__name__, Path(secret_store.__file__).read_text()).texts.items():
        path = folder / "mounted" / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        yield Installed(folder, environment, secrets, admin)
    finally:
        moto.stop()


@contextlib.contextmanager
def running(installed: Installed) -> Iterator[Server]:
    """The tables and a server on them."""
    code, message = installed.upgrade()
    assert code == 0, message
    process = installed.run(serve.__name__)
    try:
        url = f"http://127.0.0.1:{installed.environment['PORT']}"
        wait_until_healthy(process, url, installed.log)
        secret = installed.secrets.get_secret_value(SecretId=installed.admin_secret)
        admin = json.loads(secret["SecretString"])
        yield Server(url, process, installed.log, admin["username"], admin["password"])
    finally:
        process.terminate()
        code = process.wait(timeout=120)
    assert code == 0
    assert not psutil.pid_exists(process.pid)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with installed(tmp_path_factory.mktemp("tracking")) as programs, running(programs) as found:
        yield found
