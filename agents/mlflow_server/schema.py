"""Tables of the tracking server: their revision, their upgrade, and the first user.

`main` is the program of a Job with the image of the next servers, which `up` waits for before it changes
them: an image that cannot be pulled or imported changes nothing. Where tables have the revision of the image,
servers are replaced one by one. Where they are older, MLflow cannot serve both (mlflow 3.17.2,
`store/db/utils.py`, `_verify_schema`): the Job stops the old servers, takes a snapshot, upgrades and ends. A
revision that the image does not know is refused: MLflow has no way back but the snapshot.

Exit codes: 0 the tables have the revision of this image, 1 they do not; the reason is the container's
termination message. Settings come from arguments, and of the database from the environment (`libpq.login`).
"""

import argparse
import contextlib
import fcntl
import importlib
import importlib.metadata
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from agents.mlflow_server import administrator, libpq
from agents.mlflow_server.record import DONE, UNCHANGED, Record, Revisions
from agents.shared.api_server import ApiServer, finish

log = logging.getLogger("trainstack.mlflow")

# PostgreSQL advisory lock during an upgrade, so that several take turns. Any constant.
LOCK = 7_021_966_305
# Each history of migrations: table of its revision, and folder below that of MLflow.
_HISTORIES = {
    "tracking": ("alembic_version", "store/db_migrations"),
    "users": ("alembic_version_auth", "server/auth/db/migrations"),
}
_POLL_S = 2.0


class SchemaError(Exception):
    """The tables do not have the revision of this MLflow; the message has the way back."""


class RunningServers:
    """The running servers; these are not known here, and run on during an upgrade."""

    def stop(self) -> None:
        """Stop all, and wait until none runs."""

    def resume(self) -> None:
        """Start them again, as they were."""


@dataclass(frozen=True)
class Tables:
    """MLflow's tables; `users`: also those of its users."""

    uri: str
    users: bool = True
    renew: Callable[[], None] = lambda: None
    """Renews the login of the database; called before connections are opened."""

    @contextlib.contextmanager
    def connection(self, *, locked: bool = False) -> Iterator[Any]:
        """A connection, `locked` against others that want the lock; ended with it."""
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
        self.renew()
        # Without a pool, so that the connection closes here: the lock lasts as long as the connection.
        engine = sqlalchemy.create_engine(self.uri, poolclass=sqlalchemy.pool.NullPool)
        with contextlib.ExitStack() as held:
            if locked and engine.dialect.name == "sqlite":
                # A file, shared by processes of one machine: SQLite has no lock that spans transactions.
                lock = held.enter_context(Path(f"{engine.url.database}.migration").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            connection = held.enter_context(engine.connect())
            if locked and engine.dialect.name == "postgresql":
                connection.execute(sqlalchemy.text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
                connection.commit()  # of a session, not of a transaction that would stay open
            yield connection

    def revisions(self, connection: Any) -> Revisions:
        """The revision of each history; None without tables."""
        migration: Any = importlib.import_module("alembic.migration")
        found: Revisions = {}
        for name in self._histories():
            options = {"version_table": _HISTORIES[name][0]}
            context = migration.MigrationContext.configure(connection, opts=options)
            found[name] = context.get_current_revision()
        connection.rollback()  # ends the transaction that the reading began
        return found

    def known(self) -> dict[str, list[str]]:
        """The revisions of each history that this MLflow knows, the newest first."""
        script: Any = importlib.import_module("alembic.script")
        below = Path(str(importlib.import_module("mlflow").__file__)).parent
        return {
            name: [
                one.revision for one in script.ScriptDirectory(below / _HISTORIES[name][1]).walk_revisions()
            ]
            for name in self._histories()
        }

    def upgrade(self) -> None:
        """Create or upgrade the tables; one at a time, under the lock."""
        self.renew()
        importlib.import_module("mlflow.db").commands(["upgrade", self.uri], standalone_mode=False)
        if self.users:
            self.renew()
            users: Any = importlib.import_module("mlflow.server.auth.db.cli")
            users.commands(["upgrade", "--url", self.uri], standalone_mode=False)

    def _histories(self) -> list[str]:
        return [name for name in _HISTORIES if name != "users" or self.users]


def require(uri: str, *, users: bool) -> None:
    """Raise SchemaError unless the tables have the revision of this MLflow."""
    database = Tables(uri, users)
    with database.connection() as connection:
        found, known = database.revisions(connection), database.known()
    _refuse_newer(database, found, known)
    if behind := [name for name in found if found[name] != known[name][0]]:
        raise SchemaError(
            f"{_described(found, behind)}, which is not that of MLflow {_version()}: run `up`, which upgrades"
            " them; after a restore of the database see docs/explanation/tracking.md"
        )


def upgrade(database: Tables, servers: RunningServers, snapshot: Callable[[str], str] = lambda _: "") -> str:
    """Bring the tables to the revision of this MLflow; returns a message. Raises SchemaError.

    `snapshot` takes one by name and returns its name in the cloud, empty where there is none.
    """
    with database.connection(locked=True) as connection:
        found, known = database.revisions(connection), database.known()
        _refuse_newer(database, found, known)
        heads: Revisions = {name: revisions[0] for name, revisions in known.items()}
        if found == heads:
            return _settled(database, servers, heads)
        if not any(found.values()):
            database.upgrade()
            return f"created the tables of MLflow {_version()}"
        record = Record(database.connection)
        at = record.begin(_version(), found, heads)
        try:
            servers.stop()
            taken = snapshot(f"before-{heads['tracking']}-{time.strftime('%Y%m%d%H%M%S', time.gmtime())}")
            record.mark(at, snapshot=taken)
            database.upgrade()
            record.mark(at, state=DONE)
        except Exception as error:
            with database.connection() as fresh:  # the other one was idle for as long as this took
                kept = database.revisions(fresh) == found
            if kept:
                servers.resume()
                record.mark(at, state=UNCHANGED)
            state = "the tables are as before and the old servers start again" if kept else "no server runs"
            raise SchemaError(f"the upgrade failed, {state}: {type(error).__name__}: {error}") from error
    return f"upgraded the tables to those of MLflow {_version()}; snapshot before: {taken or 'none'}"


def _settled(database: Tables, servers: RunningServers, heads: Revisions) -> str:
    """Finish upgrades that were killed: before the tables changed, when this is the older image, or after."""
    record = Record(database.connection)
    for at, before, after in record.started():
        if heads == before:
            servers.resume()
            record.mark(at, state=UNCHANGED)
        elif heads == after:
            record.mark(at, state=DONE)
    return f"the tables have the revision of MLflow {_version()}"


def _refuse_newer(database: Tables, found: Revisions, known: Mapping[str, Sequence[str]]) -> None:
    newer = [name for name, revision in found.items() if revision and revision not in known[name]]
    if newer:
        raise SchemaError(
            f"{_described(found, newer)}, which MLflow {_version()} does not know: a newer MLflow upgraded"
            f" them, and MLflow cannot go back. Set tracking.image to the newer image, or restore"
            f" {Record(database.connection).way_back(known)}: docs/explanation/tracking.md"
        )


def _described(found: Revisions, names: Sequence[str]) -> str:
    return "the database has " + ", ".join(f"revision {found[name]} of the {name} tables" for name in names)


def _version() -> str:
    return importlib.metadata.version("mlflow")


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
            return finish(f"the image has MLflow {_version()}", asked.message, passed=True)
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
