"""Start the MLflow server with secrets it fetches itself; the main program of the tracking pods.

Runs inside the server's image (Python >= 3.10, MLflow with its `auth` extra) from a ConfigMap. Beside it lie
`libpq.py`, and `secret_store.py`, the cloud's store of secrets: `connect(environment)` there returns a
`CredentialStore`, which also issues tokens (`libpq.Tokens`) where DATABASE_IDENTITY requires them. Secrets
go from the store into this process, the server's environment and one private file: never onto a command
line, into a log, into Kubernetes or the state of Pulumi. Settings come from the environment:

    HOST, PORT              address to listen on

    WORKERS                 worker processes of the server
    ALLOWED_HOSTS           comma-separated Host headers to accept; MLflow rejects others with 403
    ARTIFACTS_DESTINATION   URI of the object store below which artifacts go
    ADMIN_SECRET            secret with username, password and session_key; filled on the first start
    DATABASE_URI            SQLAlchemy URI; may hold {username} and {password}
    DATABASE_SECRET         secret with username and password, if DATABASE_URI has placeholders
    DATABASE_IDENTITY       database user, where short-lived tokens of the cloud are the password
    DATABASE_CA             CA certificates (PEM) of the database's certificate; unset: libpq's default
"""

import contextlib
import fcntl
import gc
import importlib
import logging
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol
from urllib.parse import quote

log = logging.getLogger("trainstack.mlflow")

REQUIRED = (
    "HOST",
    "PORT",
    "WORKERS",
    "ALLOWED_HOSTS",
    "ARTIFACTS_DESTINATION",
    "ADMIN_SECRET",
    "DATABASE_URI",
)
PLACEHOLDERS = ("{username}", "{password}")
ADMIN_FIELDS = ("username", "password", "session_key")

# A managed database may rotate its password. Interval of checks, in seconds.
ROTATION_CHECK_S = 60.0

# PostgreSQL advisory lock during schema changes, so that concurrent replicas migrate in turn. Any constant.
MIGRATION_LOCK = 7_021_966_305


@dataclass(frozen=True)
class ServerSettings:
    """The validated environment of the pod."""

    host: str
    port: int
    workers: int
    allowed_hosts: str
    artifacts_destination: str
    admin_secret: str
    database_uri: str
    database_secret: str
    database_identity: str = ""
    database_ca: str = ""


@dataclass(frozen=True)
class Admin:
    """The first user, and the key that signs browser sessions; the same for all replicas."""

    username: str
    password: str
    session_key: str


class CredentialStore(Protocol):
    """The cloud's store of secrets whose values are JSON objects of strings."""

    def read(self, secret: str) -> tuple[dict[str, str], str] | None:
        """The fields of a secret and their version; None while it has no value."""

    def store_first(self, secret: str, fields: Mapping[str, str]) -> bool:
        """Store a secret's first value; False when another process stored one, which is then used."""


def read_settings(environment: Mapping[str, str]) -> ServerSettings:
    """The settings in `environment`. Raises ValueError with all that is missing or invalid."""
    required = list(REQUIRED)
    if any(mark in environment.get("DATABASE_URI", "") for mark in PLACEHOLDERS):
        required.append("DATABASE_SECRET")
    wrong = [f"{name} is not set" for name in required if not environment.get(name)]
    wrong += [
        f"{name} is not a number: {environment[name]}"
        for name in ("PORT", "WORKERS")
        if environment.get(name) and not environment[name].isdigit()
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    return ServerSettings(
        host=environment["HOST"],
        port=int(environment["PORT"]),
        workers=int(environment["WORKERS"]),
        allowed_hosts=environment["ALLOWED_HOSTS"],
        artifacts_destination=environment["ARTIFACTS_DESTINATION"],
        admin_secret=environment["ADMIN_SECRET"],
        database_uri=environment["DATABASE_URI"],
        database_secret=environment.get("DATABASE_SECRET", ""),
        database_identity=environment.get("DATABASE_IDENTITY", ""),
        database_ca=environment.get("DATABASE_CA", ""),
    )


def database_uri(template: str, credentials: Mapping[str, str]) -> str:
    """`template` with the placeholders filled; special characters of a generated password are quoted."""
    uri = template
    for mark in PLACEHOLDERS:
        if mark in uri:
            uri = uri.replace(mark, quote(credentials[mark.strip("{}")], safe=""))
    return uri


def auth_ini(uri: str, admin_username: str) -> str:
    """The configuration of MLflow's basic-auth app, which keeps its users in the tracking database.

    A user sees nothing without a grant. Verified passwords are cached for a minute (in each worker): hashing
    one takes longer than most requests, and a training job sends many.
    """
    escaped = uri.replace("%", "%%")  # configparser would read %40 as a reference
    return (
        "[mlflow]\n"
        "default_permission = NO_PERMISSIONS\n"
        f"database_uri = {escaped}\n"
        f"admin_username = {admin_username}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        "auth_cache_ttl_seconds = 60\n"
    )


def server_arguments(settings: ServerSettings) -> list[str]:
    """The arguments of `mlflow`; they hold no secret."""
    return [
        "server",
        *("--app-name", "basic-auth"),
        *("--host", settings.host),
        *("--port", str(settings.port)),
        *("--workers", str(settings.workers)),
        *("--artifacts-destination", settings.artifacts_destination),
        *("--allowed-hosts", settings.allowed_hosts),
    ]


def server_environment(inherited: Mapping[str, str], uri: str, admin: Admin, ini: Path) -> dict[str, str]:
    """The environment of the server, secrets included.

    Job execution (evaluation and judges inside the server) is off: it polls the database, which then never
    pauses, and its memory grows (mlflow/mlflow#22792).
    """
    return {
        **inherited,
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_AUTH_CONFIG_PATH": str(ini),
        "MLFLOW_AUTH_ADMIN_PASSWORD": admin.password,
        "MLFLOW_FLASK_SERVER_SECRET_KEY": admin.session_key,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def admin_credentials(
    store: CredentialStore, secret: str, pause: Callable[[float], None] = time.sleep
) -> Admin:
    """The admin of the server; creates and stores one when the secret has no value yet."""
    found = store.read(secret)
    if found is None:
        store_new_admin(store, secret)
        found = read_new_secret(store, secret, pause)
    fields, _ = found
    absent = [name for name in ADMIN_FIELDS if not fields.get(name)]
    if absent:
        raise ValueError(f"the secret {secret} lacks {', '.join(absent)}")
    return Admin(**{name: fields[name] for name in ADMIN_FIELDS})


def store_new_admin(store: CredentialStore, secret: str) -> None:
    """Store a new password, unless another replica stored one."""
    fields = {
        "username": "admin",
        "password": secrets.token_urlsafe(32),
        "session_key": secrets.token_hex(32),
    }
    if store.store_first(secret, fields):
        log.info("stored a new admin password in %s", secret)
    else:
        log.info("another replica stored the admin password")


def read_new_secret(
    store: CredentialStore, secret: str, pause: Callable[[float], None]
) -> tuple[dict[str, str], str]:
    """Read a new value, which may take a moment to be visible. Raises ValueError without one."""
    for wait in (0.2, 0.5, 1.0, 2.0, 4.0, 0.0):
        found = store.read(secret)
        if found is not None:
            return found
        pause(wait)
    raise ValueError(f"the secret {secret} has no value")


def migrate(uri: str, *, users: bool = True) -> None:
    """Migrate tracking and, with `users`, auth tables to this MLflow's schema; creates them where absent.

    MLflow does not start on an older schema, and its migrations must not run concurrently.
    """
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    tracking = importlib.import_module("mlflow.db").commands
    auth = importlib.import_module("mlflow.server.auth.db.cli").commands if users else None
    # Without a pool, so that the connection closes here: the lock lasts as long as the connection.
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.pool.NullPool)
    with engine.connect() as connection, contextlib.ExitStack() as held:
        if engine.dialect.name == "postgresql":
            connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        elif engine.url.database:
            # A database file, shared by replicas on one machine: SQLite has no lock that spans several
            # transactions. The kernel releases this one with the process.
            lock = held.enter_context(Path(f"{engine.url.database}.migration").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        tracking(["upgrade", uri], standalone_mode=False)
        if auth is not None:
            auth(["upgrade", "--url", uri], standalone_mode=False)


def supervise(server: "subprocess.Popen[bytes]", changed: Callable[[], bool], interval_s: float) -> bool:
    """Wait until the server ends; True if it was stopped here because `changed()` returned True."""

    def forward(signum: int, _frame: FrameType | None) -> None:
        server.send_signal(signum)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    while True:
        try:
            server.wait(timeout=interval_s)
            return False
        except subprocess.TimeoutExpired:
            if changed():
                # Spread restarts of replicas.
                time.sleep(random.uniform(0, interval_s / 2))  # noqa: S311 - spreads load, guards nothing
                server.terminate()
                server.wait()
                return True


def database_credentials(settings: ServerSettings, store: CredentialStore) -> tuple[Mapping[str, str], str]:
    """User and password of the database with their version; empty for a database without a password."""
    if not settings.database_secret:
        return {}, ""
    found = store.read(settings.database_secret)
    if found is None:
        raise ValueError(f"the secret {settings.database_secret} has no value")
    return found


def serve(settings: ServerSettings) -> None:
    """Migrate the database and become the MLflow server; the secrets are in the environment.

    This process imports, migrates and then only waits for the workers. Garbage collection took a quarter of
    its processor time meanwhile, so it is off. The workers are processes of their own with collection.
    """
    gc.disable()
    migrate(os.environ["MLFLOW_BACKEND_STORE_URI"])
    # As the `mlflow` command, but in this process: importing MLflow a second time would take seconds.
    importlib.import_module("mlflow.cli").cli(server_arguments(settings), prog_name="mlflow")


def database_login(settings: ServerSettings, uri: str, store: CredentialStore, folder: Path) -> Any:
    """A `libpq.Login` with its first token; None for a database with a password, or another driver."""
    if not uri.startswith("postgresql") or not (settings.database_identity or settings.database_ca):
        return None
    login: Any = importlib.import_module("libpq").Login(
        store, folder, identity=settings.database_identity, authorities=settings.database_ca
    )
    login.renew()
    return login


def start(settings: ServerSettings, store: CredentialStore) -> int:
    """Fetch the secrets and run the server with them; returns its exit code. Restarts after a rotation."""
    credentials, version = database_credentials(settings, store)
    uri = database_uri(settings.database_uri, credentials)
    admin = admin_credentials(store, settings.admin_secret)
    login: Any = None

    def rotated() -> bool:
        try:
            if login is not None:
                login.renew()
            return bool(version) and database_credentials(settings, store)[1] != version
        except Exception as problem:
            # A working server must not end because the store is unavailable.
            log.warning("cannot check for a rotated password: %s", type(problem).__name__)
            return False

    with tempfile.TemporaryDirectory(prefix="mlflow-") as private:  # mode 0700
        login = database_login(settings, uri, store, Path(private))
        ini = Path(private, "auth.ini")
        ini.touch(mode=0o600)
        ini.write_text(auth_ini(uri, admin.username))
        environment = server_environment(os.environ, uri, admin, ini)
        if login is not None:
            environment |= login.environment
        with subprocess.Popen([sys.executable, __file__, "serve"], env=environment) as server:
            again = supervise(server, rotated, ROTATION_CHECK_S)
        code = server.returncode
    if again:
        log.info("the database password was rotated; starting again with the new one")
        os.execv(sys.executable, [sys.executable, __file__])  # noqa: S606 - this very program
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    """Fetch secrets and supervise the server; with the argument `serve`: run the server itself."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        settings = read_settings(os.environ)
        if arguments != ["serve"]:
            store: CredentialStore = importlib.import_module("secret_store").connect(os.environ)
    except ValueError as problem:
        log.error("cannot start: %s", problem)
        return 2
    if arguments != ["serve"]:
        return start(settings, store)
    serve(settings)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
