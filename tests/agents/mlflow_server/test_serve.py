"""The main program of the tracking pods, piece by piece."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agents.mlflow_server import serve as program

ENVIRONMENT = {
    "HOST": "127.0.0.1",
    "PORT": "5000",
    "WORKERS": "2",
    "ALLOWED_HOSTS": "mlflow:5000",
    "ARTIFACTS_DESTINATION": "s3://bucket/mlflow",
    "DATABASE_URI": "postgresql+psycopg2://mlflow@db:5432/mlflow?sslmode=require",
    "DATABASE_SECRET": "arn:database",
}


def test_settings_are_read() -> None:
    settings = program.read_settings(ENVIRONMENT | {"WORKERS": "1"})
    assert (settings.port, settings.workers) == (5000, 1)


def test_there_are_no_more_workers_than_processors() -> None:
    settings = program.read_settings(ENVIRONMENT | {"WORKERS": "4000"})
    assert settings.workers == len(os.sched_getaffinity(0))


def test_everything_missing_or_wrong_is_reported_at_once() -> None:
    with pytest.raises(ValueError, match="HOST") as caught:
        program.read_settings(ENVIRONMENT | {"HOST": "", "PORT": "http", "DATABASE_URI": ""})
    assert "DATABASE_URI" in str(caught.value)
    assert "number: http" in str(caught.value)


def test_the_server_is_started_with_the_guard_and_without_trust_in_headers(tmp_path: Path) -> None:
    arguments = program.server_arguments(program.read_settings(ENVIRONMENT))
    assert arguments[arguments.index("--app-name") + 1] == "trainstack"
    assert "--no-proxy-headers" in arguments[arguments.index("--uvicorn-opts") + 1]
    assert arguments[arguments.index("--allowed-hosts") + 1] == "mlflow:5000"
    made = program.server_environment({"PATH": "/bin"}, "postgresql://u@h/d", tmp_path)
    assert made["PATH"] == "/bin" and made["MLFLOW_BACKEND_STORE_URI"] == "postgresql://u@h/d"
    assert made["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert made["MLFLOW_BASIC_AUTH_FAIL_CLOSED"] == "true"


SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_the_password_is_renewed_while_the_server_runs_even_after_an_error() -> None:
    calls: list[float] = []
    with subprocess.Popen(SLEEPER) as server:

        def renew() -> None:
            calls.append(time.monotonic())
            if len(calls) == 1:
                raise OSError("the cloud is unavailable")
            if len(calls) == 3:
                server.terminate()

        assert program.supervise(server, renew, 0.05) == 128 + signal.SIGTERM
    assert len(calls) >= 3


def test_a_server_that_ends_by_itself_ends_the_program() -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as server:
        assert program.supervise(server, lambda: None, 0.05) == 3


def test_sigterm_reaches_the_server() -> None:
    with subprocess.Popen(SLEEPER) as server:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        started = time.monotonic()
        assert program.supervise(server, lambda: None, 10.0) == 128 + signal.SIGTERM
        assert time.monotonic() - started < 5


@pytest.mark.usefixtures("_store")
def test_main_refuses_bad_settings_with_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert program.main([]) == 2
    assert "HOST" in caplog.text


@pytest.mark.usefixtures("_store")
def test_main_needs_the_region_of_its_secrets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    assert program.main([]) == 2
    assert "AWS_REGION" in caplog.text


@pytest.fixture
def _store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the pod has the store of its cloud beside the program."""
    from agents.aws.mlflow_server import secret_store

    monkeypatch.setitem(sys.modules, f"{program.__package__}.secret_store", secret_store)
