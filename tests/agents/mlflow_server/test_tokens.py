"""Short-lived tokens as passwords: the file that libpq reads, and a real PostgreSQL that asks for them."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.mlflow_server import libpq
from agents.mlflow_server import serve as program
from tests.agents.mlflow_server.test_serve import ENVIRONMENT

IDENTITY = "mlflow@dev-1.example.com"
URI = "postgresql+psycopg2://mlflow%40dev-1.iam@10.0.0.3:5432/mlflow?sslmode=verify-ca"


@dataclass
class Store:
    """A store of secrets that hands out the tokens it is given."""

    tokens: list[str | Exception] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        return None if secret == "arn:nothing" else ({"username": "admin", "password": "p"}, "1")

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        return False

    def token(self, identity: str) -> str:
        self.asked.append(identity)
        found = self.tokens.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


class Clock:
    """Time that stands still unless a test moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def login(store: Store, folder: Path, clock: Clock | None = None) -> libpq.Login:
    return libpq.Login(store, folder, identity=IDENTITY, authorities="", clock=clock or Clock())


VARIABLES = {"DATABASE_URI": URI, "DATABASE_IDENTITY": IDENTITY}


def test_the_file_is_private_and_gets_another_token_only_when_it_is_old(tmp_path: Path) -> None:
    store, clock = Store(["one", "two"]), Clock()
    made = login(store, tmp_path, clock)
    made.renew()
    file = Path(made.environment["PGPASSFILE"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "*:*:*:*:one\n"
    clock.now = libpq.TOKEN_AGE_S - 1
    made.renew()
    assert store.tokens == ["two"]
    clock.now = libpq.TOKEN_AGE_S
    made.renew()
    assert file.read_text() == "*:*:*:*:two\n"
    assert [path.name for path in tmp_path.iterdir()] == ["pgpass"]


def test_a_cloud_that_does_not_answer_leaves_the_token_that_still_works(tmp_path: Path) -> None:
    store, clock = Store(["one", OSError("no answer"), "two"]), Clock()
    made = login(store, tmp_path, clock)
    made.renew()
    clock.now = libpq.TOKEN_AGE_S
    with pytest.raises(OSError, match="no answer"):
        made.renew()
    assert (tmp_path / "pgpass").read_text() == "*:*:*:*:one\n"
    made.renew()  # at the next look, not a quarter of an hour later
    assert (tmp_path / "pgpass").read_text() == "*:*:*:*:two\n"


def test_tokens_live_longer_than_they_are_kept() -> None:
    """Cloud SQL and others take a token for an hour; one may be missed twice."""
    assert 3 * libpq.TOKEN_AGE_S + program.RENEWAL_CHECK_S < 3600


def test_without_an_identity_or_postgresql_no_token_is_asked_for(tmp_path: Path) -> None:
    """The database of a rehearsal is a file, whatever the stack says."""
    store = Store(["one"])
    assert libpq.login({"DATABASE_URI": URI}, store, tmp_path).environment == {}
    file = {**VARIABLES, "DATABASE_URI": "sqlite:///mlflow.db"}
    assert libpq.login(file, store, tmp_path).environment == {}
    assert store.asked == []


def test_a_secret_has_the_password_and_its_rotation_takes_a_minute(tmp_path: Path) -> None:
    store = Store()
    made = libpq.login({"DATABASE_URI": URI, "DATABASE_SECRET": "arn:database"}, store, tmp_path)
    assert Path(made.environment["PGPASSFILE"]).read_text() == "*:*:*:*:p\n"
    assert libpq.SECRET_AGE_S <= program.RENEWAL_CHECK_S <= 60
    with pytest.raises(ValueError, match="arn:nothing has no value"):
        libpq.SecretPassword(store).token("arn:nothing")


def test_certificates_alone_need_no_token(tmp_path: Path) -> None:
    """A database with a password, whose certificate an authority of its own signed."""
    store = Store()
    made = libpq.login({"DATABASE_URI": URI, "DATABASE_CA": "pem"}, store, tmp_path)
    assert set(made.environment) == {"PGSSLROOTCERT"} and store.asked == []


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> program.ServerSettings:
    """The environment of the program."""
    for name, value in {**ENVIRONMENT, **VARIABLES}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DATABASE_SECRET")
    return program.read_settings(os.environ)


def stand_in(tmp_path: Path, body: str) -> list[str]:
    """A program in place of the server."""
    path = tmp_path / "server.py"
    path.write_text(body)
    return [sys.executable, str(path)]


def test_the_server_finds_the_token_and_the_certificates_and_no_password(
    variables: program.ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_CA", "-----BEGIN CERTIFICATE-----\n")
    seen = tmp_path / "seen.json"
    server = stand_in(
        tmp_path,
        "import json, os\n"
        "from importlib.metadata import entry_points\n"
        "files = {name: open(os.environ[name]).read() for name in"
        " ('PGPASSFILE', 'PGSSLROOTCERT', 'MLFLOW_AUTH_CONFIG_PATH')}\n"
        "modes = [oct(os.stat(os.path.dirname(os.environ['PGPASSFILE'])).st_mode)]\n"
        "apps = {one.name: one.value for one in entry_points(group='mlflow.app')}\n"
        f"json.dump([files, modes, apps, dict(os.environ)], open({str(seen)!r}, 'w'))\n"
        "raise SystemExit(7)\n",
    )
    store = Store(["one"])
    assert program.start(variables, store, server) == 7
    files, modes, apps, environment = json.loads(seen.read_text())
    assert files["PGPASSFILE"] == "*:*:*:*:one\n"
    assert files["PGSSLROOTCERT"] == "-----BEGIN CERTIFICATE-----\n"
    assert "default_permission = NO_PERMISSIONS" in files["MLFLOW_AUTH_CONFIG_PATH"]
    assert stat.S_IMODE(int(modes[0], 8)) == 0o700
    assert apps["trainstack"].startswith("agents.mlflow_server.guard:")
    assert environment["MLFLOW_BACKEND_STORE_URI"] == URI
    assert store.asked == [IDENTITY]
    assert not Path(environment["PGPASSFILE"]).exists(), "the file goes with the server"


def test_a_running_server_gets_the_next_token_and_is_not_restarted(
    variables: program.ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends by itself when it sees the second token."""
    server = stand_in(
        tmp_path,
        "import os, time\n"
        "for _ in range(200):\n"
        "    time.sleep(0.05)\n"
        "    if 'two' in open(os.environ['PGPASSFILE']).read():\n"
        "        raise SystemExit(0)\n"
        "raise SystemExit(9)\n",
    )
    monkeypatch.setattr(program, "RENEWAL_CHECK_S", 0.05)
    login = libpq.Login(
        Store(["one", OSError("no answer"), *["two"] * 300]),
        tmp_path, identity=IDENTITY, authorities="", age_s=0.1,
    )  # fmt: skip
    login.renew()
    monkeypatch.setattr(libpq, "login", lambda *_: login)
    assert program.start(variables, Store(), server) == 0


BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), Path("/nowhere"))
postgresql = pytest.mark.skipif(
    not (BINARIES / "initdb").exists() or shutil.which("psql") is None,
    reason="needs PostgreSQL: apt-get install postgresql",
)
# As long as tokens are, with what the file has to escape.
ONE, TWO = ("ya29.c." + "a:b\\c" * 300, "ya29.c." + "d" * 1700)


@pytest.fixture
def database() -> Iterator[tuple[str, Any]]:
    """A server that asks for passwords: its address, and a function that runs SQL there as its owner."""
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        yield from _served(Path(name))


def _served(folder: Path) -> Iterator[tuple[str, Any]]:
    # PostgreSQL refuses to run as root.
    owner = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if owner:
        shutil.chown(folder, **owner)
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **owner)  # type: ignore[call-overload]

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run(str(BINARIES / "initdb"), "--auth-local=trust", "--auth-host=scram-sha-256", "-D", str(data))
    options = f"-p {port} -h 127.0.0.1 -k {folder} -F"
    run(str(BINARIES / "pg_ctl"), "-w", "-D", str(data), "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield (
            f"postgresql://mlflow@127.0.0.1:{port}/postgres",
            lambda sql: run("psql", "-h", str(folder), "-p", str(port), "-c", sql, "postgres"),
        )
    finally:
        run(str(BINARIES / "pg_ctl"), "-w", "-D", str(data), "-m", "immediate", "stop")


@postgresql
def test_every_connection_of_libpq_has_the_token_of_its_moment(database: Any, tmp_path: Path) -> None:
    uri, sql = database
    clock = Clock()
    made = login(Store([ONE, TWO]), tmp_path, clock)
    made.renew()

    def connects() -> bool:
        """In a process that began with the environment of the server, and knows nothing of tokens."""
        command = ["psql", "--no-password", "--command", "SELECT 1", uri]
        environment = {**os.environ, **made.environment}
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0

    sql(f"CREATE ROLE mlflow LOGIN PASSWORD '{ONE}'")
    assert connects()
    sql(f"ALTER ROLE mlflow PASSWORD '{TWO}'")  # as if the first had ended
    assert not connects()
    clock.now = libpq.TOKEN_AGE_S
    made.renew()
    assert connects()
