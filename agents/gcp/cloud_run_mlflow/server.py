"""Start MLflow on Cloud Run; the main program of the tracking server's container.

Runs inside the server's image (Python >= 3.10 with MLflow) from a zip, together with `libpq` and `serve` of
the tracking server in a cluster. Identity-Aware Proxy authorizes requests before they arrive, so the server
has no users of its own. Settings come from the environment:

    PORT                    the port to listen on; Cloud Run sets it
    WORKERS                 worker processes of the server
    ARTIFACTS_DESTINATION   URI of the object store below which artifacts go
    DATABASE_URI            SQLAlchemy URI without a password; `libpq.login` has the variables of its login
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.gcp.cloud_run_mlflow.metadata import OwnTokens
from agents.mlflow_server import guard, libpq, schema, serve

log = logging.getLogger("trainstack.mlflow")
REQUIRED = ("PORT", "WORKERS", "ARTIFACTS_DESTINATION", "DATABASE_URI")


@dataclass(frozen=True)
class CloudRunSettings:
    """The validated environment of the container."""

    port: int
    workers: int
    artifacts_destination: str
    database_uri: str


def read_settings(environment: Mapping[str, str]) -> CloudRunSettings:
    """The settings in `environment`. Raises ValueError with all that is missing or invalid."""
    if wrong := serve.problems(environment, REQUIRED):
        raise ValueError("; ".join(wrong))
    return CloudRunSettings(
        port=int(environment["PORT"]),
        workers=int(environment["WORKERS"]),
        artifacts_destination=environment["ARTIFACTS_DESTINATION"],
        database_uri=environment["DATABASE_URI"],
    )


def server_arguments(settings: CloudRunSettings) -> list[str]:
    """The arguments of `mlflow`; they hold no secret.

    Any Host header is accepted: Google's front end routes only the service's own names, which are not known
    before the service is created.
    """
    return [
        "server",
        *("--app-name", guard.WITHOUT_USERS),
        *("--host", "0.0.0.0"),  # noqa: S104 - the front end alone reaches the container
        *("--port", str(settings.port)),
        *("--workers", str(settings.workers)),
        *("--artifacts-destination", settings.artifacts_destination),
        *("--allowed-hosts", "*"),
        *("--uvicorn-opts", serve.UVICORN),
    ]


def start(settings: CloudRunSettings, command: list[str]) -> int:
    """Run `command`, renewing its login while it runs; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="mlflow-") as name:  # mode 0700
        private = Path(name)
        login = libpq.login(os.environ, OwnTokens(os.environ), private)
        environment = serve.server_environment(os.environ, settings.database_uri, private) | login.environment
        with subprocess.Popen(command, env=environment) as server:
            return serve.supervise(server, login.renew, serve.RENEWAL_CHECK_S)


def run(settings: CloudRunSettings) -> int:
    """Upgrade the tables and become the MLflow server; the login is in the environment.

    Instances of the last revision serve until this one does. When it fails they go on.
    """
    try:
        upgraded = schema.upgrade(schema.Tables(settings.database_uri, users=False), schema.RunningServers())
    except schema.SchemaError as problem:
        log.error("cannot start: %s", problem)
        return serve.OTHER_SCHEMA
    log.info(upgraded)
    return serve.run(settings.database_uri, server_arguments(settings), users=False)


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
    return run(settings)


def _this() -> list[str]:
    """Arguments of Python for this program: its zip, or its module in the tree."""
    zipped = sys.argv[0]
    return [zipped] if zipped.endswith(".zip") else ["-m", __name__ if __name__ != "__main__" else _MODULE]


_MODULE = "agents.gcp.cloud_run_mlflow.server"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
