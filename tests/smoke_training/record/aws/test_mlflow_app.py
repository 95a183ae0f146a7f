"""A tracking server that SageMaker runs: who asks is signed, and artifacts go to its bucket."""

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from smoke_training.record import mlflow
from smoke_training.record.aws.api import MlflowApp
from smoke_training.record.mlflow import TrackingError

boto3: Any = importlib.import_module("boto3")  # without type hints
auth: Any = importlib.import_module("botocore.auth")
Credentials: Any = importlib.import_module("botocore.credentials").Credentials
AWSRequest: Any = importlib.import_module("botocore.awsrequest").AWSRequest

REGION = "eu-central-1"
APP = f"arn:aws:sagemaker:{REGION}:123456789012:mlflow-app/app-0123456789AB"


def signed(request: BaseHTTPRequestHandler, body: bytes, credentials: Any) -> bool:
    """Sign a request again with botocore, and compare."""
    sent = request.headers["Authorization"]
    names = sent.split("SignedHeaders=")[1].split(",")[0].split(";")
    url = f"http://{request.headers['Host']}{request.path}"
    kept = {name: request.headers[name] for name in names if name != "host"}
    again = AWSRequest(request.command, url, kept, body)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    signer = auth.SigV4Auth(credentials, "sagemaker", REGION)
    expected = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    return bool(sent.endswith(f"Signature={expected}"))


class _Service(BaseHTTPRequestHandler):
    """Answers requests with a correct signature."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        good = signed(self, b"", boto3.Session().get_credentials())
        good = good and self.headers["x-sm-mlflow-app-arn"] == APP
        content = json.dumps({"experiment": {"experiment_id": "7"}}).encode()
        self.send_response(200 if good else 403)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server = HTTPServer(("127.0.0.1", 0), _Service)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_requests_are_signed_as_the_service_wants_them(address: str) -> None:
    known = {"MLFLOW_TRACKING_URI": APP, "SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT": address}
    assert mlflow.connect(known, 10).existing_experiment("a team's + runs") == "7"


def test_without_another_address_the_region_has_one() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ACCESS_KEY_ID", "key")
        patched.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        assert MlflowApp(APP, {}).address == f"https://mlflow.sagemaker.{REGION}.app.aws"


@mock_aws
def test_artifacts_go_to_the_bucket_of_the_app(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    s3 = boto3.client("s3", "us-east-1")
    s3.create_bucket(Bucket="artifacts")
    known = {"MLFLOW_TRACKING_URI": APP, "SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT": address}
    tracking = mlflow.connect(known, 10)
    tracking.upload("s3://artifacts/7/run/artifacts", "result.json", b"{}")
    assert s3.get_object(Bucket="artifacts", Key="7/run/artifacts/result.json")["Body"].read() == b"{}"
    with pytest.raises(TrackingError, match="NoSuchBucket"):
        tracking.upload("s3://elsewhere/7", "result.json", b"{}")


@pytest.mark.parametrize(
    "uri", ["arn:aws:sagemaker:eu-central-1:123456789012:mlflow-tracking-server/x", "arn:x", "s3://bucket"]
)
def test_another_address_is_a_reason(uri: str) -> None:
    with pytest.raises(TrackingError, match="MLflow App"):
        mlflow.connect({"MLFLOW_TRACKING_URI": uri}, 10)


class _Login(BaseHTTPRequestHandler):
    """Container credentials that end within minutes, another key for each request, and the app's address."""

    keys: list[str]
    calls: list[bool]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.keys.append(f"AKID{len(self.keys)}")
        until = datetime.now(UTC) + timedelta(minutes=5)
        self._send(
            {
                "AccessKeyId": self.keys[-1],
                "SecretAccessKey": f"secret of {self.keys[-1]}",
                "Token": "token",
                "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Authorization"].split("Credential=")[1].split("/")[0]
        self.calls.append(signed(self, body, Credentials(key, f"secret of {key}")))
        self._send({})

    def _send(self, found: dict[str, str]) -> None:
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def test_a_script_outlives_the_credentials_it_began_with(archive: Path) -> None:
    keys: list[str] = []
    calls: list[bool] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Login", (_Login,), {"keys": keys, "calls": calls}))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    text = """
import mlflow
for step in range(3):
    mlflow.MlflowClient().log_metric("0" * 32, "loss", 1.0, step=step)
"""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MLFLOW_"))},
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/credentials",
        "AWS_EC2_METADATA_DISABLED": "true",
        "MLFLOW_TRACKING_URI": APP,
        "PYTHONPATH": str(archive),
        "SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT": address,
    }
    try:
        subprocess.run([sys.executable, "-c", text], env=environment, check=True)
    finally:
        server.shutdown()
        server.server_close()
    # botocore renews keys in their last ten minutes, so each of these requests has a new one.
    assert calls == [True, True, True] and len(keys) >= 3
