"""The main program of the tracking pods, piece by piece."""

import configparser
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from agents.aws.mlflow_server import secret_store
from agents.aws.mlflow_server.secret_store import AwsSecrets
from agents.mlflow_server import serve as program

ENVIRONMENT = {
    "HOST": "127.0.0.1",
    "PORT": "5000",
    "WORKERS": "2",
    "ALLOWED_HOSTS": "mlflow:5000",
    "ARTIFACTS_DESTINATION": "s3://bucket/mlflow",
    "ADMIN_SECRET": "arn:admin",
    "DATABASE_URI": "postgresql+psycopg2://{username}:{password}@db:5432/mlflow?sslmode=require",
    "DATABASE_SECRET": "arn:database",
}
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


class NoSuchValueError(Exception):
    """What boto3 calls ResourceNotFoundException."""


class ValueExistsError(Exception):
    """What boto3 calls ResourceExistsException."""


class Secrets:
    """Secrets Manager as its API reference describes it: one value per request token."""

    exceptions = SimpleNamespace(
        ResourceNotFoundException=NoSuchValueError, ResourceExistsException=ValueExistsError
    )

    def __init__(self, **values: dict[str, str]) -> None:
        self.current = {arn: (json.dumps(value), f"{arn}-1") for arn, value in values.items()}
        self.versions: dict[str, dict[str, str]] = {}
        self.blind_reads = 0  # how many reads find nothing yet

    def get_secret_value(self, **request: str) -> dict[str, str]:
        arn = request["SecretId"]
        if self.blind_reads > 0 or arn not in self.current:
            self.blind_reads -= 1
            raise NoSuchValueError
        value, version = self.current[arn]
        return {"SecretString": value, "VersionId": version}

    def put_secret_value(self, **request: str) -> None:
        token, value = request["ClientRequestToken"], request["SecretString"]
        assert 32 <= len(token) <= 64, "the API's own limits"
        known = self.versions.setdefault(request["SecretId"], {})
        if known.setdefault(token, value) != value:
            raise ValueExistsError
        self.current[request["SecretId"]] = (value, token)


def test_settings_are_read() -> None:
    settings = program.read_settings(ENVIRONMENT)
    assert (settings.port, settings.workers) == (5000, 2)


def test_everything_missing_or_wrong_is_reported_at_once() -> None:
    with pytest.raises(ValueError, match="HOST") as caught:
        program.read_settings(ENVIRONMENT | {"HOST": "", "PORT": "http", "DATABASE_SECRET": ""})
    assert "DATABASE_SECRET" in str(caught.value)
    assert "number: http" in str(caught.value)


def test_database_without_placeholders_needs_no_secret() -> None:
    plain = ENVIRONMENT | {"DATABASE_URI": "sqlite:///mlflow.db"}
    del plain["DATABASE_SECRET"]
    assert program.read_settings(plain).database_secret == ""


@given(username=TEXT, password=TEXT)
def test_any_password_survives_the_uri_and_the_ini_file(username: str, password: str) -> None:
    credentials = {"username": username, "password": password}
    uri = program.database_uri(ENVIRONMENT["DATABASE_URI"], credentials)
    parser = configparser.ConfigParser()
    parser.read_string(program.auth_ini(uri, "admin"))
    url = make_url(parser["mlflow"]["database_uri"])
    assert (url.username, url.password) == (username, password)
    assert (url.host, url.port, url.database) == ("db", 5432, "mlflow")
    assert url.query == {"sslmode": "require"}


def test_new_users_see_nothing() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(program.auth_ini("sqlite:///x.db", "admin"))
    assert parser["mlflow"]["default_permission"] == "NO_PERMISSIONS"


def test_first_start_stores_a_strong_admin_password_and_later_ones_use_it() -> None:
    secrets = Secrets()
    first = program.admin_credentials(AwsSecrets(secrets), "arn:admin")
    assert len(first.password) >= 40
    assert len(first.session_key) >= 40
    assert first.password != first.session_key
    assert json.loads(secrets.current["arn:admin"][0]) == {
        "username": first.username,
        "password": first.password,
        "session_key": first.session_key,
    }
    assert program.admin_credentials(AwsSecrets(secrets), "arn:admin") == first


def test_replicas_that_start_together_agree_on_the_password() -> None:
    secrets = Secrets()
    program.store_new_admin(AwsSecrets(secrets), "arn:admin")
    fast = secrets.current["arn:admin"][0]
    program.store_new_admin(AwsSecrets(secrets), "arn:admin")  # saw no value either, and comes second
    assert secrets.current["arn:admin"][0] == fast


def test_a_new_value_may_take_a_moment_to_show() -> None:
    secrets = Secrets()
    secrets.blind_reads = 3
    waits: list[float] = []
    admin = program.admin_credentials(AwsSecrets(secrets), "arn:admin", waits.append)
    assert admin.password
    assert len(waits) == 2


def test_secret_without_a_field_is_an_error_that_shows_no_value() -> None:
    secrets = Secrets(**{"arn:admin": {"username": "admin", "password": "hush-hush-hush"}})
    with pytest.raises(ValueError, match=r"arn:admin lacks session_key") as caught:
        program.admin_credentials(AwsSecrets(secrets), "arn:admin")
    assert "hush" not in str(caught.value)


def test_secrets_are_in_the_environment_of_the_server_and_not_in_its_arguments() -> None:
    settings = program.read_settings(ENVIRONMENT)
    admin = program.Admin("admin", "pass-word", "session-key")
    environment = program.server_environment(
        {"PATH": "/bin"}, "postgresql://u:db-word@h/d", admin, Path("/t/a.ini")
    )
    assert environment["PATH"] == "/bin"
    assert environment["MLFLOW_BACKEND_STORE_URI"] == "postgresql://u:db-word@h/d"
    assert environment["MLFLOW_AUTH_CONFIG_PATH"] == "/t/a.ini"
    assert environment["MLFLOW_AUTH_ADMIN_PASSWORD"] == "pass-word"
    assert environment["MLFLOW_FLASK_SERVER_SECRET_KEY"] == "session-key"
    arguments = " ".join(program.server_arguments(settings))
    assert "--app-name basic-auth" in arguments
    assert "--allowed-hosts mlflow:5000" in arguments
    assert not any(word in arguments for word in ("pass-word", "session-key", "db-word"))


def test_replicas_take_turns_with_the_schema_and_then_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Connection:
        def __enter__(self) -> "Connection":
            return self

        def __exit__(self, *_: object) -> None:
            events.append("connection closed")

        def execute(self, statement: object, _: dict[str, int]) -> None:
            events.append(str(statement).split("(")[0])

    class Engine:
        dialect = SimpleNamespace(name="postgresql")

        def connect(self) -> Connection:
            return Connection()

    def create_engine(_: str, poolclass: type) -> Engine:
        # A pooled connection would be kept, and with it the lock: the second replica would wait forever.
        assert poolclass is sqlalchemy.pool.NullPool
        return Engine()

    def commands(name: str) -> SimpleNamespace:
        return SimpleNamespace(commands=lambda arguments, standalone_mode: events.append(name))

    monkeypatch.setattr(sqlalchemy, "create_engine", create_engine)
    monkeypatch.setitem(sys.modules, "mlflow.db", commands("tracking"))
    monkeypatch.setitem(sys.modules, "mlflow.server.auth.db.cli", commands("users"))
    program.migrate("postgresql://somewhere")
    assert events == ["SELECT pg_advisory_lock", "tracking", "users", "connection closed"]


SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_server_is_ended_when_the_password_changes() -> None:
    with subprocess.Popen(SLEEPER) as server:
        answers = iter([False, False, True])
        assert program.supervise(server, lambda: next(answers), 0.05) is True
        assert server.returncode == -signal.SIGTERM


def test_server_that_ends_by_itself_is_not_started_again() -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as server:
        assert program.supervise(server, lambda: False, 0.05) is False
        assert server.returncode == 3


def test_sigterm_reaches_the_server() -> None:
    with subprocess.Popen(SLEEPER) as server:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
        started = time.monotonic()
        assert program.supervise(server, lambda: False, 10.0) is False
        assert time.monotonic() - started < 5
        assert server.returncode == -signal.SIGTERM


class RestartedError(Exception):
    """Raised instead of replacing the test's own process."""


def stand_in(tmp_path: Path, body: str) -> str:
    """A program in place of the server: it is called like `serve.py serve`."""
    path = tmp_path / "serve.py"
    path.write_text("import json, os, sys, time\n" + body)
    return str(path)


def test_start_gives_the_secrets_to_the_server_in_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen.json"
    body = (
        "ini = os.environ['MLFLOW_AUTH_CONFIG_PATH']\n"
        f"json.dump([sys.argv, oct(os.stat(ini).st_mode), oct(os.stat(os.path.dirname(ini)).st_mode),"
        f" ini, dict(os.environ)], open({str(seen)!r}, 'w'))\n"
        "raise SystemExit(7)\n"
    )
    monkeypatch.setattr(program, "__file__", stand_in(tmp_path, body))
    secrets = Secrets(**{"arn:database": {"username": "u", "password": "p@ss"}})
    assert program.start(program.read_settings(ENVIRONMENT), AwsSecrets(secrets)) == 7
    argv, file_mode, folder_mode, ini, environment = json.loads(seen.read_text())
    assert argv[1:] == ["serve"]
    assert stat.S_IMODE(int(file_mode, 8)) == 0o600
    assert stat.S_IMODE(int(folder_mode, 8)) == 0o700
    assert environment["MLFLOW_BACKEND_STORE_URI"].startswith("postgresql+psycopg2://u:p%40ss@db")
    assert not Path(ini).exists(), "the file goes with the server"


def test_start_begins_again_after_a_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "__file__", stand_in(tmp_path, "time.sleep(60)\n"))
    monkeypatch.setattr(program, "ROTATION_CHECK_S", 0.1)

    def restarted(*_: Any) -> None:
        raise RestartedError

    monkeypatch.setattr(os, "execv", restarted)
    secrets = Secrets(**{"arn:database": {"username": "u", "password": "old"}})
    threading.Timer(
        0.5, secrets.current.update, ({"arn:database": ('{"username": "u", "password": "new"}', "2")},)
    ).start()
    with pytest.raises(RestartedError):
        program.start(program.read_settings(ENVIRONMENT), AwsSecrets(secrets))


def test_start_carries_on_when_secrets_manager_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "__file__", stand_in(tmp_path, "time.sleep(1)\n"))
    monkeypatch.setattr(program, "ROTATION_CHECK_S", 0.1)
    secrets = Secrets(**{"arn:database": {"username": "u", "password": "p"}})
    threading.Timer(0.3, setattr, (secrets, "blind_reads", 10_000)).start()
    assert program.start(program.read_settings(ENVIRONMENT), AwsSecrets(secrets)) == 0
    assert secrets.blind_reads < 10_000


def test_main_refuses_bad_settings_with_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert program.main([]) == 2
    assert "HOST" in caplog.text


def test_main_needs_the_region_of_its_secrets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setitem(sys.modules, "secret_store", secret_store)
    assert program.main([]) == 2
    assert "AWS_REGION" in caplog.text
