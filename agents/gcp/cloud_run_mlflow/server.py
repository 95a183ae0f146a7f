"""Start MLflow on Cloud Run; the main program of the tracking server's container.

Runs inside the server's image (Python >= 3.10 with MLflow) from a zip, together with `libpq` and `serve` of
the tracking server in a cluster. Identity-Aware Proxy authorizes requests before they arrive, so the server
has no users of its own. Settings come from the environment:

    PORT                    the port to listen on; Cloud Run sets it
    WORKERS                 worker processes of the server
    ARTIFACTS_DESTINATION   URI of the object store below which artifacts go
    DATABASE_URI            SQLAlchemy URI without a password
    DATABASE_IDENTITY       this program's account, whose tokens are the password; empty: no password
    DATABASE_CA             CA certificates (PEM) of the database's certificate; unset: libpq's default
"""

import gc
import importlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.gcp.cloud_run_mlflow.metadata import OwnTokens
from agents.mlflow_server import libpq, serve

log = logging.getLogger("trainstack.mlflow")
REQUIRED = ("PORT", "WORKERS", "ARTIFACTS_DESTINATION", "DATABASE_URI")
# Interval of checks of the password file, seconds; `libpq` replaces it every quarter of an hour.
_LOOK_S = 60.0


@dataclass(frozen=True)
class CloudRunSettings:
    """The validated environment of the container."""

    port: int
    workers: int
    artifacts_destination: str
    database_uri: str
    database_identity: str = ""
    database_ca: str = ""


def read_settings(environment: Mapping[str, str]) -> CloudRunSettings:
    """The settings in `environment`. Raises ValueError with all that is missing or invalid."""
    wrong = [f"{name} is not set" for name in REQUIRED if not environment.get(name)]
    wrong += [
        f"{name} is not a number: {environment[name]}"
        for name in ("PORT", "WORKERS")
        if environment.get(name) and not environment[name].isdigit()
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    return CloudRunSettings(
        port=int(environment["PORT"]),
        workers=int(environment["WORKERS"]),
        artifacts_destination=environment["ARTIFACTS_DESTINATION"],
        database_uri=environment["DATABASE_URI"],
        database_identity=environment.get("DATABASE_IDENTITY", ""),
        database_ca=environment.get("DATABASE_CA", ""),
    )


def server_arguments(settings: CloudRunSettings) -> list[str]:
    """The arguments of `mlflow`; they hold no secret.

    Any Host header is accepted: Google's front end routes only the service's own names, which are not known
    before the service is created.
    """
    return [
        "server",
        *("--host", "0.0.0.0"),  # noqa: S104 - the front end alone reaches the container
        *("--port", str(settings.port)),
        *("--workers", str(settings.workers)),
        *("--artifacts-destination", settings.artifacts_destination),
        *("--allowed-hosts", "*"),
    ]


def server_environment(inherited: Mapping[str, str], settings: CloudRunSettings) -> dict[str, str]:
    """The environment of the server. Job execution is off; `serve` has the reason."""
    return {
        **inherited,
        "MLFLOW_BACKEND_STORE_URI": settings.database_uri,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def start(settings: CloudRunSettings, command: list[str]) -> int:
    """Run `command`, renewing its login while it runs; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="mlflow-") as private:  # mode 0700
        environment = server_environment(os.environ, settings)
        login = libpq.Login(
            OwnTokens(os.environ),
            Path(private),
            identity=settings.database_identity,
            authorities=settings.database_ca,
        )
        login.renew()
        environment |= login.environment

        def renewed() -> bool:
            try:
                login.renew()
            except OSError as problem:
                # Open connections stay; the next check retries.
                log.warning("no new token: %s", problem)
            return False

        with subprocess.Popen(command, env=environment) as server:
            serve.supervise(server, renewed, _LOOK_S)
        code = server.returncode
    return code if code >= 0 else 128 - code


def run(settings: CloudRunSettings) -> None:
    """Migrate the database and become the MLflow server; the login is in the environment."""
    gc.disable()  # this process then only waits for the workers
    serve.migrate(os.environ["MLFLOW_BACKEND_STORE_URI"], users=False)
    importlib.import_module("mlflow.cli").cli(server_arguments(settings), prog_name="mlflow")


def main(arguments: list[str]) -> int:
    """Log in and supervise the server; with the argument `serve`: run the server itself."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        settings = read_settings(os.environ)
    except ValueError as problem:
        log.error("cannot start: %s", problem)
        return 2
    if arguments != ["serve"]:
        return start(settings, [sys.executable, *_this(), "serve"])
    run(settings)
    return 0


def _this() -> list[str]:
    """Arguments of Python for this program: its zip, or its module in the tree."""
    zipped = sys.argv[0]
    return [zipped] if zipped.endswith(".zip") else ["-m", __name__ if __name__ != "__main__" else _MODULE]


_MODULE = "agents.gcp.cloud_run_mlflow.server"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
