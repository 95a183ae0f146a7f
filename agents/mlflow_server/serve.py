"""Start the MLflow server; the main program of the tracking pods.

Runs inside the server's image (Python >= 3.10, MLflow with its `auth` extra) from a ConfigMap. Beside it lies
`secret_store`, the cloud's store of secrets: `connect(environment)` there returns a `CredentialStore`, which
also issues tokens (`libpq.Tokens`) where DATABASE_IDENTITY requires them.

The only secret here is the database's password, in a file: never in an environment, on a command line, in a
log, in Kubernetes or in the state of Pulumi. The tables and the first user exist before (`schema`). Settings
come from the environment, besides those of `libpq.login`:

    HOST, PORT              address to listen on
    WORKERS                 worker processes of the server
    ALLOWED_HOSTS           comma-separated Host headers to accept; MLflow rejects others with 403
    ARTIFACTS_DESTINATION   URI of the object store below which artifacts go
"""

import gc
import importlib
import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from agents.mlflow_server import administrator, guard, libpq, schema

log = logging.getLogger("trainstack.mlflow")

REQUIRED = ("HOST", "PORT", "WORKERS", "ALLOWED_HOSTS", "ARTIFACTS_DESTINATION", "DATABASE_URI")

# Interval of checks of the password file, in seconds.
RENEWAL_CHECK_S = 60.0

# By default, uvicorn takes the peer's address from the headers of requests from the loopback.
UVICORN = "--no-proxy-headers --no-server-header"

# Exit code of a server whose tables have another revision.
OTHER_SCHEMA = 3


@dataclass(frozen=True)
class ServerSettings:
    """The validated environment of the pod."""

    host: str
    port: int
    workers: int
    allowed_hosts: str
    artifacts_destination: str
    database_uri: str


def problems(environment: Mapping[str, str], required: tuple[str, ...]) -> list[str]:
    """Everything that is missing or no number."""
    wrong = [f"{name} is not set" for name in required if not environment.get(name)]
    return wrong + [
        f"{name} is not a number: {environment[name]}"
        for name in ("PORT", "WORKERS")
        if environment.get(name) and not environment[name].isdigit()
    ]


def read_settings(environment: Mapping[str, str]) -> ServerSettings:
    """The settings in `environment`. Raises ValueError with all that is missing or invalid.

    There are no more workers than processors: each imports MLflow, which takes 9 s of processor time.
    """
    if wrong := problems(environment, REQUIRED):
        raise ValueError("; ".join(wrong))
    return ServerSettings(
        host=environment["HOST"],
        port=int(environment["PORT"]),
        workers=min(int(environment["WORKERS"]), len(os.sched_getaffinity(0))),
        allowed_hosts=environment["ALLOWED_HOSTS"],
        artifacts_destination=environment["ARTIFACTS_DESTINATION"],
        database_uri=environment["DATABASE_URI"],
    )


def server_arguments(settings: ServerSettings) -> list[str]:
    """The arguments of `mlflow`; they hold no secret."""
    return [
        "server",
        *("--app-name", guard.WITH_USERS),
        *("--host", settings.host),
        *("--port", str(settings.port)),
        *("--workers", str(settings.workers)),
        *("--artifacts-destination", settings.artifacts_destination),
        *("--allowed-hosts", settings.allowed_hosts),
        *("--uvicorn-opts", UVICORN),
    ]


def server_environment(inherited: Mapping[str, str], uri: str, private: Path) -> dict[str, str]:
    """The environment of the server, with the plug-in `guard` in the folder `private`; without a secret.

    Job execution (evaluation and judges inside the server) is off: it runs code of members, polls the
    database, which then never pauses, and its memory grows (mlflow/mlflow#22792).
    """
    guard.plugin(private)
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join((str(private), str(Path(__file__).parents[2]))),
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_BASIC_AUTH_FAIL_CLOSED": "true",
        "MLFLOW_CREATE_MODEL_VERSION_SOURCE_VALIDATION_REGEX": guard.SOURCES,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def supervise(server: "subprocess.Popen[bytes]", renew: Callable[[], None], interval_s: float) -> int:
    """Call `renew` now and then until the server ends; returns its exit code."""

    def forward(signum: int, _frame: FrameType | None) -> None:
        server.send_signal(signum)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    while True:
        try:
            code = server.wait(timeout=interval_s)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            try:
                renew()
            except Exception as problem:
                # Open connections stay, and a working server must not end because the cloud is unavailable.
                log.warning("no new password of the database: %s", type(problem).__name__)


def run(uri: str, arguments: list[str], *, users: bool) -> int:
    """Become the MLflow server; the login of the database is in the environment.

    This process imports, checks and then only waits for the workers. Garbage collection took a quarter of
    its processor time meanwhile, so it is off. The workers are processes of their own with collection.
    """
    gc.disable()
    try:
        schema.require(uri, users=users)
    except schema.SchemaError as problem:
        log.error("cannot start: %s", problem)
        return OTHER_SCHEMA
    # As the `mlflow` command, but in this process: importing MLflow a second time would take seconds.
    importlib.import_module("mlflow.cli").cli(arguments, prog_name="mlflow")
    return 0


def start(settings: ServerSettings, store: Any, command: list[str]) -> int:
    """Run `command`, the server, with the login of its database; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="mlflow-") as name:  # mode 0700
        private = Path(name)
        login = libpq.login(os.environ, store, private)
        ini = private / "auth.ini"
        ini.write_text(administrator.configuration(settings.database_uri))
        environment = {
            **server_environment(os.environ, settings.database_uri, private),
            **login.environment,
            "MLFLOW_AUTH_CONFIG_PATH": str(ini),
            # MLflow's form for new users requires a key; the form is refused, so this signs nothing.
            "MLFLOW_FLASK_SERVER_SECRET_KEY": secrets.token_hex(32),
        }
        with subprocess.Popen(command, env=environment) as server:
            return supervise(server, login.renew, RENEWAL_CHECK_S)


def main(arguments: list[str]) -> int:
    """Log in to the database and supervise the server; with the argument `serve`: run the server itself."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        settings = read_settings(os.environ)
        if arguments == ["serve"]:
            return run(settings.database_uri, server_arguments(settings), users=True)
        store = importlib.import_module(".secret_store", __package__).connect(os.environ)
        return start(settings, store, [sys.executable, "-m", __spec__.name, "serve"])
    except ValueError as problem:
        log.error("cannot start: %s", problem)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
