"""Start MLflow on Cloud Run; the main program of the tracking server's container.

Runs inside the server's image (Python >= 3.10 with MLflow) from a zip, together with `libpq` and `serve` of
the tracking server in a cluster. Who may come is decided before a request arrives: by Identity-Aware Proxy.
So the server has no users of its own. Settings come from the environment:

    PORT                    where to listen; Cloud Run sets it
    WORKERS                 worker processes of the server
    ARTIFACTS_DESTINATION   URI of the object store below which artifacts go
    DATABASE_URI            SQLAlchemy URI without a password
    DATABASE_IDENTITY       the account as which this runs, whose tokens are the password; empty: none is
    DATABASE_CA             certificates (PEM) of who signs the database's certificate; unset: libpq's default
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
# How often the password file is looked at, in seconds; `libpq` replaces it every quarter of an hour.
_LOOK_S = 60.0


@dataclass(frozen=True)
class Settings:
    """The environment of the container, checked."""

    port: int
    workers: int
    artifacts_destination: str
    database_uri: str
    database_identity: str = ""
    database_ca: str = ""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings in `environment`. Raises ValueError that names everything missing or wrong at once."""
    wrong = [f"{name} is not set" for name in REQUIRED if not environment.get(name)]
    wrong += [
        f"{name} is not a number: {environment[name]}"
        for name in ("PORT", "WORKERS")
        if environment.get(name) and not environment[name].isdigit()
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    return Settings(
        port=int(environment["PORT"]),
        workers=int(environment["WORKERS"]),
        artifacts_destination=environment["ARTIFACTS_DESTINATION"],
        database_uri=environment["DATABASE_URI"],
        database_identity=environment.get("DATABASE_IDENTITY", ""),
        database_ca=environment.get("DATABASE_CA", ""),
    )


def server_arguments(settings: Settings) -> list[str]:
    """The arguments of `mlflow`; they hold no secret.

    Any Host header is accepted: Google's front end asks for this service by its own names only, and those are
    not known before the service is made.
    """
    return [
        "server",
        *("--host", "0.0.0.0"),  # noqa: S104 - the front end alone reaches the container
        *("--port", str(settings.port)),
        *("--workers", str(settings.workers)),
        *("--artifacts-destination", settings.artifacts_destination),
        *("--allowed-hosts", "*"),
    ]


def server_environment(inherited: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """The environment of the server. Job execution is off for the reason that `serve` gives."""
    return {
        **inherited,
        "MLFLOW_BACKEND_STORE_URI": settings.database_uri,
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def start(settings: Settings, command: list[str]) -> int:
    """Run `command` with a login that is renewed as long as it runs; its exit code."""
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
                # Connections that stand go on; the next look asks again.
                log.warning("no new token: %s", problem)
            return False

        with subprocess.Popen(command, env=environment) as server:
            serve.supervise(server, renewed, _LOOK_S)
        code = server.returncode
    return code if code >= 0 else 128 - code


def run(settings: Settings) -> None:
    """Migrate and become the MLflow server; the login is in the environment already."""
    gc.disable()  # this process then only waits for the workers
    serve.migrate(os.environ["MLFLOW_BACKEND_STORE_URI"], users=False)
    importlib.import_module("mlflow.cli").cli(server_arguments(settings), prog_name="mlflow")


def main(arguments: list[str]) -> int:
    """Without arguments: log in and supervise. `serve`: the server itself."""
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
    """How Python runs this program once more: from its zip, or as a module of the tree."""
    zipped = sys.argv[0]
    return [zipped] if zipped.endswith(".zip") else ["-m", __name__ if __name__ != "__main__" else _MODULE]


_MODULE = "agents.gcp.cloud_run_mlflow.server"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
