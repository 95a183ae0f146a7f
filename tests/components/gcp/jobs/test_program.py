"""The tracking server's program: it fits into a variable, and really starts MLflow from there."""

import base64
import io
import os
import socket
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.gcp.cloud_run_mlflow import metadata, server
from components.gcp.jobs.program import START, VARIABLE, zipped
from components.gcp.jobs.tracking import _MODULES
from infra.errors import UserError
from tests.components.gcp.tracking.google import POD_TOKEN, Google
from tests.components.gcp.tracking.google import google as apis


def program() -> str:
    return zipped(_MODULES[0], _MODULES)


def started(environment: dict[str, str], tmp_path: Path) -> "subprocess.Popen[str]":
    """As Cloud Run starts the container, but for the folder of temporary files."""
    command = START.replace("/tmp/trainstack.zip", str(tmp_path / "trainstack.zip"))
    return subprocess.Popen(
        [sys.executable, "-c", command],
        env={"PATH": os.environ["PATH"], VARIABLE: program(), **environment},
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_the_same_sources_are_the_same_bytes_and_modules_of_this_tree() -> None:
    assert program() == program()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(program()))) as archive:
        names = set(archive.namelist())
    assert {f"{name.replace('.', '/')}.py" for name in _MODULES} <= names and "__main__.py" in names


def test_a_program_that_fits_into_no_variable_is_refused() -> None:
    large = [f"infra.catalog.gcp.{name}" for name in ("catalog", "model", "pools", "network", "quotas")]
    everything = [
        *large,
        "infra.cost.gcp.cluster",
        "infra.stackspec.layouts",
        "infra.stackspec.stack",
        *_MODULES,
    ]
    more = ["rehearsal.gcp.rules.clusters", "rehearsal.gcp.rules.pools", "rehearsal.gcp.rules.accounts"]
    with pytest.raises(UserError, match="32768 bytes"):
        zipped(_MODULES[0], [*everything, *more, "infra.stackspec.clouds", "rehearsal.gcp.rules.storage"])


def test_a_container_without_settings_says_everything_that_is_missing(tmp_path: Path) -> None:
    process = started({"PORT": "x"}, tmp_path)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    for name in ("WORKERS is not set", "DATABASE_URI is not set", "PORT is not a number: x"):
        assert name in said
    assert "Traceback" not in said


@pytest.mark.timeout(180)
def test_mlflow_really_starts_from_the_variable_and_ends_on_a_signal(tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = started(
        {
            "PORT": str(port),
            "WORKERS": "1",
            "ARTIFACTS_DESTINATION": str(tmp_path / "artifacts"),
            "DATABASE_URI": f"sqlite:///{tmp_path}/mlflow.db",
        },
        tmp_path,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "Uvicorn running on" in line:
                break
        assert _asked(f"http://127.0.0.1:{port}/health", "small-gcp.a.run.app") == b"OK"
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode in (0, 143)


def _asked(url: str, host: str) -> bytes:
    """As Google's front end asks: by the service's own name."""
    request = urllib.request.Request(url, headers={"Host": host})
    with urllib.request.urlopen(request, timeout=30) as answer:
        body: bytes = answer.read()
    return body


@pytest.fixture
def google() -> Iterator[Google]:
    with apis() as made:
        yield made


def test_a_token_is_asked_for_logins_alone_and_never_kept(google: Google) -> None:
    tokens = metadata.OwnTokens(google.environment)
    assert tokens.token("anybody") == POD_TOKEN and tokens.token("anybody") == POD_TOKEN
    paths = [path for _, path, _ in google.asked]
    assert len(paths) == 2 and all(
        "scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fsqlservice.login" in one for one in paths
    )


def test_without_a_metadata_server_the_start_fails_after_some_patience_and_says_so() -> None:
    seconds = iter(range(0, 1000, 10))
    waits: list[float] = []
    tokens = metadata.OwnTokens(
        {"GCE_METADATA_HOST": "127.0.0.1:1"}, clock=lambda: float(next(seconds)), pause=waits.append
    )
    with pytest.raises(metadata.NoTokenError, match="dev-tracking"):
        tokens.token("dev-tracking")
    assert waits, "it did not ask again"


def test_the_server_needs_no_user_and_takes_any_name_that_the_front_end_has() -> None:
    settings = server.CloudRunSettings(8080, 1, "gs://artifacts/mlflow", "sqlite://")
    arguments = server.server_arguments(settings)
    assert arguments[arguments.index("--app-name") + 1] == "trainstack-open"
    assert arguments[arguments.index("--allowed-hosts") + 1] == "*"
