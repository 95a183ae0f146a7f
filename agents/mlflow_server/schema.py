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
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.mlflow_server import administrator, libpq
from agents.shared.api_server import ApiServer, finish

log = logging.getLogger("trainstack.mlflow")

# PostgreSQL advisory lock during an upgrade, so that several take turns. Any constant.
LOCK = 7_021_966_305
# Each history of migrations: table of its revision, and folder below that of MLflow.
_HISTORIES = {
    "tracking": ("alembic_version", "store/db_migrations"),
    "users": ("alembic_version_auth", "server/auth/db/migrations"),
}
# Upgrades of this database, beside MLflow's tables.
_RECORD = "trainstack_upgrades"
_POLL_S = 2.0

Revisions = dict[str, str | None]


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

    @contextlib.contextmanager
    def connection(self, *, locked: bool = False) -> Iterator[Any]:
        """A connection, `locked` against others that want the lock; ended with it."""
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
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
        importlib.import_module("mlflow.db").commands(["upgrade", self.uri], standalone_mode=False)
        if self.users:
            users: Any = importlib.import_module("mlflow.server.auth.db.cli")
            users.commands(["upgrade", "--url", self.uri], standalone_mode=False)

    def _histories(self) -> list[str]:
        return [name for name in _HISTORIES if name != "users" or self.users]


def require(uri: str, *, users: bool) -> None:
    """Raise SchemaError unless the tables have the revision of this MLflow."""
    database = Tables(uri, users)
    with database.connection() as connection:
        found, known = database.revisions(connection), database.known()
        _refuse_newer(connection, found, known)
    if behind := [name for name in found if found[name] != known[name][0]]:
        raise SchemaError(
            f"{_described(found, behind)}, which is not that of MLflow {_version()}: run `up` to upgrade them"
        )


def upgrade(database: Tables, servers: RunningServers, snapshot: Callable[[str], str] = lambda _: "") -> str:
    """Bring the tables to the revision of this MLflow; returns a message. Raises SchemaError.

    `snapshot` takes one by name and returns its name in the cloud, empty where there is none.
    """
    with database.connection(locked=True) as connection:
        found, known = database.revisions(connection), database.known()
        _refuse_newer(connection, found, known)
        heads: Revisions = {name: revisions[0] for name, revisions in known.items()}
        if found == heads:
            return f"the tables have the revision of MLflow {_version()}"
        if not any(found.values()):
            database.upgrade()
            return f"created the tables of MLflow {_version()}"
        servers.stop()
        try:
            taken = snapshot(f"before-{heads['tracking']}-{time.strftime('%Y%m%d%H%M%S', time.gmtime())}")
            database.upgrade()
            _record(connection, found, heads, taken)
        except Exception as error:
            kept = database.revisions(connection) == found
            if kept:
                servers.resume()
            state = "the tables are as before and the old servers start again" if kept else "no server runs"
            raise SchemaError(f"the upgrade failed, {state}: {type(error).__name__}: {error}") from error
    return f"upgraded the tables to those of MLflow {_version()}; snapshot before: {taken or 'none'}"


def _refuse_newer(connection: Any, found: Revisions, known: Mapping[str, Sequence[str]]) -> None:
    newer = [name for name, revision in found.items() if revision and revision not in known[name]]
    if newer:
        raise SchemaError(
            f"{_described(found, newer)}, which MLflow {_version()} does not know: a newer MLflow upgraded"
            f" them, and MLflow cannot go back. Set tracking.image to the newer image, or restore"
            f" {_way_back(connection, known)}: docs/explanation/tracking.md"
        )


def _described(found: Revisions, names: Sequence[str]) -> str:
    return "the database has " + ", ".join(f"revision {found[name]} of the {name} tables" for name in names)


def _version() -> str:
    return importlib.metadata.version("mlflow")


def _record(connection: Any, before: Revisions, after: Revisions, snapshot: str) -> None:
    text: Any = importlib.import_module("sqlalchemy").text
    columns = ("at", "version", "revisions_before", "revisions_after", "snapshot")
    connection.execute(
        text(f"CREATE TABLE IF NOT EXISTS {_RECORD} ({', '.join(f'{c} TEXT' for c in columns)})")
    )
    values = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        _version(),
        json.dumps(before),
        json.dumps(after),
        snapshot,
    )
    insert = f"INSERT INTO {_RECORD} VALUES ({', '.join(f':{column}' for column in columns)})"  # noqa: S608
    connection.execute(text(insert), dict(zip(columns, values, strict=True)))
    connection.commit()


def _way_back(connection: Any, known: Mapping[str, Sequence[str]]) -> str:
    """The last snapshot whose revisions this MLflow knows."""
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    if not sqlalchemy.inspect(connection).has_table(_RECORD):
        return "a backup from before the upgrade"
    rows = connection.execute(sqlalchemy.text(f"SELECT at, revisions_before, snapshot FROM {_RECORD}"))  # noqa: S608
    fitting = [
        (at, snapshot)
        for at, before, snapshot in rows
        if all(revision in (None, *known.get(name, ())) for name, revision in json.loads(before).items())
    ]
    at, snapshot = max(fitting, default=("", ""))
    return f"snapshot {snapshot} of {at}" if snapshot else f"a backup from before {at or 'the upgrade'}"


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
                self._scale(self.replicas)
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
    os.environ.update(libpq.login(os.environ, store, private).environment)
    uri = os.environ["DATABASE_URI"]

    def snapshot(name: str) -> str:
        return str(store.snapshot(asked.database, name)) if asked.database else ""

    said = upgrade(Tables(uri), servers, snapshot)
    administrator.create(uri, administrator.password(store, asked.administrator))
    return said


if __name__ == "__main__":
    sys.exit(main())
