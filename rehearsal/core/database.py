"""The SQLite file below `State`: whole transactions, tables of a known version, encrypted values."""

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from infra.errors import Problem, UserError
from rehearsal import control
from rehearsal.core.encryption import Vault, WrongKeyError
from rehearsal.core.model import RefusalError

# 0: values as plain text, no version; 1: values encrypted.
VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS resource (
  key INTEGER PRIMARY KEY,
  package TEXT NOT NULL, type TEXT NOT NULL, scope TEXT NOT NULL, id TEXT NOT NULL,
  urn TEXT NOT NULL, name TEXT NOT NULL, inputs BLOB NOT NULL, outputs BLOB NOT NULL,
  UNIQUE (package, type, scope, id)
);
CREATE INDEX IF NOT EXISTS resource_name ON resource (package, type, scope, name);
CREATE INDEX IF NOT EXISTS resource_scope_name ON resource (package, scope, name);
CREATE INDEX IF NOT EXISTS resource_type_name ON resource (type, name);
CREATE INDEX IF NOT EXISTS resource_type_id ON resource (type, id);
CREATE TABLE IF NOT EXISTS reference (
  user INTEGER NOT NULL REFERENCES resource (key) ON DELETE CASCADE,
  used INTEGER NOT NULL REFERENCES resource (key) ON DELETE CASCADE,
  path TEXT NOT NULL,
  PRIMARY KEY (user, used, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS reference_used ON reference (used);
CREATE TABLE IF NOT EXISTS identifier (
  value TEXT NOT NULL, scope TEXT NOT NULL,
  resource INTEGER NOT NULL REFERENCES resource (key) ON DELETE CASCADE,
  PRIMARY KEY (value, scope, resource)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS identifier_resource ON identifier (resource);
CREATE TABLE IF NOT EXISTS creation (
  urn TEXT PRIMARY KEY, package TEXT NOT NULL, type TEXT NOT NULL, config BLOB NOT NULL,
  resource INTEGER REFERENCES resource (key) ON DELETE CASCADE, id TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS creation_resource ON creation (resource);
CREATE INDEX IF NOT EXISTS creation_id ON creation (id);
CREATE TABLE IF NOT EXISTS document (
  space TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (space, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS probe (sealed BLOB NOT NULL);
"""
# (table, its key columns, columns that hold encrypted values)
_ENCRYPTED = (
    ("resource", ("key",), ("inputs", "outputs")),
    ("creation", ("urn",), ("config",)),
    ("document", ("space", "key"), ("value",)),
)
_PATIENCE_S = 30.0
_DISK_ERRORS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


class Database:
    """One connection that many threads share: reads take the lock, changes a transaction.

    `daemon`: this process is the daemon of the home, the only writer.
    Raises UserError when the file is of another version or was encrypted with another passphrase.
    """

    def __init__(self, path: Path, *, daemon: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.lock = path, threading.RLock()
        self._depth = 0
        self._vault = Vault(path.parent)
        self.seal, self.unseal = self._vault.seal, self._vault.unseal
        path.touch(mode=0o600)  # SQLite gives its other files the same mode
        self.connection = sqlite3.connect(
            path, check_same_thread=False, isolation_level=None, timeout=_PATIENCE_S
        )
        try:
            self._open(daemon)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all changes inside or none; transactions may nest (the outermost decides).

        Raises RefusalError when the disk is full or fails; then nothing has changed.
        """
        with self.lock:
            if self._depth:
                self._depth += 1
                try:
                    yield self.connection
                finally:
                    self._depth -= 1
                return
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                self._depth = 1
                yield self.connection
                self.connection.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if (error.sqlite_errorcode & 0xFF) not in _DISK_ERRORS:
                    raise
                text = (
                    f"no space left, or no access, for {self.path} ({error}); free some space and run again"
                )
                raise RefusalError("StateNotWritable", text) from error
            finally:
                self._depth = 0
                # SQLite ends a transaction itself on some errors, and not on others.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def _open(self, daemon: bool) -> None:
        self._use_wal()
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        # In one statement: another process may be creating the file.
        version, tables = self.connection.execute(
            "SELECT user_version, EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'resource')"
            " FROM pragma_user_version"
        ).fetchone()
        if version > VERSION:
            rule = f"was written by a newer trainstack (this one knows versions up to {VERSION})"
            fix = self._or_remove("Use that trainstack")
            raise UserError([Problem(str(self.path), version, rule, fix, code="state-version-too-new")])
        if version < VERSION:
            self._create_or_migrate(daemon, old=bool(tables))
        sealed = self.connection.execute("SELECT sealed FROM probe").fetchone()[0]
        try:
            self.unseal(sealed)
        except WrongKeyError as error:
            rule = f"was not encrypted with the passphrase in {self.path.with_name('passphrase')}"
            fix = self._or_remove("Restore the former passphrase")
            raise UserError(
                [Problem(str(self.path), None, rule, fix, code="state-passphrase-differs")]
            ) from error

    def _use_wal(self) -> None:
        """Use a WAL: a commit survives `kill -9` of this process; only a power cut can lose the last one."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait for another process that does the same to a new file.
                if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    def _or_remove(self, otherwise: str) -> str:
        return f"{otherwise}, or remove {self.path.parent} to start from nothing."

    def _create_or_migrate(self, daemon: bool, *, old: bool) -> None:
        """Create the tables; encrypt the values of an old file. Idempotent."""
        with contextlib.ExitStack() as stack:
            if old and not daemon:
                stack.enter_context(self._without_daemon())
            with self.transaction():
                for statement in _SCHEMA.split(";"):
                    self.connection.execute(statement)
                for table, keys, columns in _ENCRYPTED:
                    self._encrypt(table, keys, columns)
                self.connection.execute(
                    "INSERT INTO probe SELECT ? WHERE NOT EXISTS (SELECT 1 FROM probe)", (self.seal("probe"),)
                )
                if not old:
                    self.connection.execute(f"PRAGMA user_version = {VERSION}")
            if old:  # free pages and the log still hold the plain text
                self.connection.execute("VACUUM")
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self.connection.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _without_daemon(self) -> Iterator[None]:
        """Lock out daemons of the former version, which could not read the migrated file."""
        try:
            with control.exclusive(self.path.with_name("daemon.lock"), time.monotonic()):
                yield
        except control.ControlError as error:
            rule = "is of an older version, and the daemon of that version still runs"
            fix = "Run `trainstack rehearse stop`, then this command again."
            raise UserError(
                [Problem(str(self.path), None, rule, fix, code="old-daemon-still-runs")]
            ) from error

    def _encrypt(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> None:
        where = " AND ".join(f"{key} = ?" for key in keys)
        for column in columns:
            found = self.connection.execute(
                f"SELECT {column}, {', '.join(keys)} FROM {table} WHERE typeof({column}) = 'text'"  # noqa: S608
            ).fetchall()
            self.connection.executemany(
                f"UPDATE {table} SET {column} = ? WHERE {where}",  # noqa: S608 - no user text
                [(self.seal(json.loads(text)), *key) for text, *key in found],
            )
