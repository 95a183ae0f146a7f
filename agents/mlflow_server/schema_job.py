"""Upgrade the tracking server's tables, and create its first user, before its servers are replaced.

The program of a Job with the image of the next servers, which `up` waits for before it changes them: an image
that cannot be pulled or imported changes nothing. See `schema`.

Exit codes: 0 the tables have the revision of this image, 1 they do not; the reason is the container's
termination message. Settings come from arguments, and of the database from the environment (`libpq.login`).
"""

import argparse
import importlib
import logging
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from agents.mlflow_server import administrator, libpq
from agents.mlflow_server.schema import RunningServers, SchemaError, Tables, upgrade, version
from agents.shared.api_server import ApiServer, finish

log = logging.getLogger("trainstack.mlflow")

_POLL_S = 2.0


@dataclass(frozen=True)
class Deployment(RunningServers):
    """The servers of a Deployment: stopped by its scale, which `up` sets again."""

    account: Path
    """Folder of the account at the API server (`ApiServer`)."""
    namespace: str
    name: str
    replicas: int
    """Replicas to start again."""
    limit_s: float

    def stop(self) -> None:
        """Scale to 0 and wait until no pod is left. Raises SchemaError after the time limit."""
        status, found = self._server().ask("GET", self._path())
        if status == 404:
            return
        if status != 200:
            raise SchemaError(f"Deployment {self.namespace}/{self.name}: status {status}: {found}")
        self._scale(0)
        labels = found["spec"]["selector"]["matchLabels"]
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        end = time.monotonic() + self.limit_s
        while left := self._pods(selector):
            if time.monotonic() > end:
                raise SchemaError(f"after {self.limit_s:.0f} s these pods still run: {', '.join(left)}")
            time.sleep(_POLL_S)

    def resume(self) -> None:
        """Start the replicas again; without the Deployment there are none."""
        if self._server().ask("GET", self._path())[0] != 404:
            self._scale(self.replicas)

    def _server(self) -> ApiServer:
        return ApiServer(self.account)

    def _path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"

    def _scale(self, replicas: int) -> None:
        self._server().must("PATCH", f"{self._path()}/scale", {"spec": {"replicas": replicas}})

    def _pods(self, selector: str) -> list[str]:
        pods = self._server().every(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=selector)
        return [
            str(pod["metadata"]["name"])
            for pod in pods
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]


def prove() -> None:
    """Import what a server imports, so that an image that lacks it changes nothing."""
    for name in ("mlflow.cli", "mlflow.server.fastapi_app", "flask_wtf", "uvicorn", "alembic"):
        importlib.import_module(name)


def _ended(_signal: int, _frame: FrameType | None) -> None:
    """Raise when the kubelet ends the pod, so that servers start again; process 1 would ignore SIGTERM."""
    raise SchemaError("the pod was ended (SIGTERM)")


def main() -> int:
    """Upgrade the tables, and create the first user."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", choices=("image", "tables"), required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--deployment", required=True)
    parser.add_argument("--replicas", type=int, required=True, help="to start again after a failure")
    parser.add_argument("--administrator", required=True, help="the store's name of the first user's secret")
    parser.add_argument("--database", required=True, help="the cloud's name of the database; empty: none")
    parser.add_argument("--seconds", type=float, required=True, help="for the old servers to end")
    parser.add_argument("--account", type=Path, required=True)
    parser.add_argument("--message", type=Path, required=True)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, _ended)
    try:
        if asked.stage == "image":
            return finish(f"the image has MLflow {version()}", asked.message, passed=True)
        prove()
        store: Any = importlib.import_module(".secret_store", __package__).connect(os.environ)
        servers = Deployment(asked.account, asked.namespace, asked.deployment, asked.replicas, asked.seconds)
        with tempfile.TemporaryDirectory(prefix="mlflow-") as private:
            said = _run(store, servers, asked, Path(private))
    except Exception as error:  # of any library: the message is the only result that `up` shows
        return finish(f"{type(error).__name__}: {error}", asked.message, passed=False)
    return finish(said, asked.message, passed=True)


def _run(store: Any, servers: RunningServers, asked: argparse.Namespace, private: Path) -> str:
    login = libpq.login(os.environ, store, private)
    os.environ.update(login.environment)
    uri = os.environ["DATABASE_URI"]

    def renew() -> None:
        try:
            login.renew()
        except Exception as problem:  # of any library: the password of before may be valid for long
            log.warning("no new password of the database: %s", type(problem).__name__)

    def snapshot(name: str) -> str:
        return str(store.snapshot(asked.database, name)) if asked.database else ""

    said = upgrade(Tables(uri, renew=renew), servers, snapshot)
    renew()
    administrator.create(uri, administrator.password(store, asked.administrator))
    return said


if __name__ == "__main__":
    sys.exit(main())
