"""Tables of the tracking server: their revision, and their upgrade.

Where tables have the revision of an image, servers are replaced one by one. Where they are older, MLflow
cannot serve both (mlflow 3.17.2, `store/db/utils.py`, `_verify_schema`): old servers stop, a snapshot is
taken, and the tables are upgraded. A revision that the image does not know is refused: MLflow has no way back
but the snapshot.
"""

import contextlib
import fcntl
import importlib
import importlib.metadata
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.mlflow_server.record import DONE, UNCHANGED, Record, Revisions

# PostgreSQL advisory lock during an upgrade, so that several take turns. Any constant.
LOCK = 7_021_966_305
# Each history of migrations: table of its revision, and folder below that of MLflow.
_HISTORIES = {
    "tracking": ("alembic_version", "store/db_migrations"),
    "users": ("alembic_version_auth", "server/auth/db/migrations"),
}


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
            f"{_described(found, behind)}, which is not that of MLflow {version()}: run `up`, which upgrades"
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
            return f"created the tables of MLflow {version()}"
        record = Record(database.connection)
        at = record.begin(version(), found, heads)
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
    return f"upgraded the tables to those of MLflow {version()}; snapshot before: {taken or 'none'}"


def _settled(database: Tables, servers: RunningServers, heads: Revisions) -> str:
    """Finish upgrades that were killed: before the tables changed, when this is the older image, or after."""
    record = Record(database.connection)
    for at, before, after in record.started():
        if heads == before:
            servers.resume()
            record.mark(at, state=UNCHANGED)
        elif heads == after:
            record.mark(at, state=DONE)
    return f"the tables have the revision of MLflow {version()}"


def _refuse_newer(database: Tables, found: Revisions, known: Mapping[str, Sequence[str]]) -> None:
    newer = [name for name, revision in found.items() if revision and revision not in known[name]]
    if newer:
        raise SchemaError(
            f"{_described(found, newer)}, which MLflow {version()} does not know: a newer MLflow upgraded"
            f" them, and MLflow cannot go back. Set tracking.image to the newer image, or restore"
            f" {Record(database.connection).way_back(known)}: docs/explanation/tracking.md"
        )


def _described(found: Revisions, names: Sequence[str]) -> str:
    return "the database has " + ", ".join(f"revision {found[name]} of the {name} tables" for name in names)


def version() -> str:
    """The version of the installed MLflow."""
    return importlib.metadata.version("mlflow")
