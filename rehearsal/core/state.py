"""State of the emulated clouds: one SQLite file that survives a killed engine and a killed provider."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehearsal.core.database import Database
from rehearsal.core.model import Properties, Record, Reference

_COLUMNS = "key, package, type, scope, id, urn, name, inputs, outputs"


class DuplicateError(Exception):
    """A resource with this package, type, scope and id exists already."""


class State:
    """Resources, the references between them, and small documents, each change on disk before the response.

    Safe for use by many threads of one process; several processes may read. For `daemon`, `transaction` and
    exceptions see `Database`.
    """

    def __init__(self, path: Path, *, daemon: bool = False) -> None:
        self.path = path
        self.database = Database(path, daemon=daemon)
        self.transaction, self.close = self.database.transaction, self.database.close
        self._lock, self._db = self.database.lock, self.database.connection
        self._seal, self._unseal = self.database.seal, self.database.unseal

    # -- resources -------------------------------------------------------------------------------------

    def insert(
        self,
        *,
        package: str,
        type: str,
        scope: str,
        id: str,
        urn: str,
        name: str,
        inputs: Properties,
        outputs: Properties,
    ) -> Record:
        """Store a new resource. Raises DuplicateError when its id is taken in its scope."""
        row = (package, type, scope, id, urn, name, self._seal(inputs), self._seal(outputs))
        with self.transaction():
            try:
                cursor = self._db.execute(
                    f"INSERT INTO resource ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    row,
                )
            except sqlite3.IntegrityError as error:
                raise DuplicateError(f"{type} {id} exists in {scope}") from error
            self._db.execute(
                "UPDATE creation SET resource = ?, id = ? WHERE urn = ? AND type = ? AND resource IS NULL",
                (cursor.lastrowid, id, urn, type),
            )
        assert cursor.lastrowid is not None
        return Record(cursor.lastrowid, package, type, scope, id, urn, name, inputs, outputs)

    def get(self, package: str, type: str, scope: str, id: str) -> Record | None:
        """The resource with this id, or None."""
        return self._one("package = ? AND type = ? AND scope = ? AND id = ?", package, type, scope, id)

    def find(
        self,
        *,
        package: str | None = None,
        type: str | None = None,
        scope: str | None = None,
        name: str | None = None,
        id: str | None = None,
        kind: str | None = None,
    ) -> list[Record]:
        """The resources that match every given column, oldest first; `kind` is the end of their type."""
        wanted = {"package": package, "type": type, "scope": scope, "name": name, "id": id}
        given = {f"{column} = ?": value for column, value in wanted.items() if value is not None}
        if kind is not None:  # here and not in the caller: most of the work is to decrypt the rows
            given["type GLOB ?"] = f"*:{kind}"
        where = " AND ".join(given) or "1"
        return self._all(where, *given.values())

    def replace(self, record: Record, *, inputs: Properties, outputs: Properties) -> Record:
        """Store the new properties of a resource."""
        with self.transaction():
            self._db.execute(
                "UPDATE resource SET inputs = ?, outputs = ? WHERE key = ?",
                (self._seal(inputs), self._seal(outputs), record.key),
            )
        return Record(**{**record.__dict__, "inputs": inputs, "outputs": outputs})

    def remove(self, record: Record) -> None:
        """Remove a resource, its identifiers and its references."""
        with self.transaction():
            self._db.execute("DELETE FROM resource WHERE key = ?", (record.key,))

    def count(self, package: str | None = None) -> int:
        """Number of resources."""
        where, values = ("package = ?", (package,)) if package else ("1", ())
        with self._lock:
            return int(self._db.execute(f"SELECT count(*) FROM resource WHERE {where}", values).fetchone()[0])  # noqa: S608

    # -- creates that no engine has confirmed ----------------------------------------------------------

    def begin_create(self, package: str, type: str, urn: str, config: Mapping[str, Any]) -> None:
        """Record that a create begins; the resource that `insert` adds for it is unconfirmed."""
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO creation VALUES (?, ?, ?, ?, NULL, NULL)",
                (urn, package, type, self._seal(dict(config))),
            )

    def unconfirmed(self, urn: str) -> tuple[Record, Properties] | None:
        """The unconfirmed resource of a create for this URN, and the settings of its provider."""
        with self._lock:
            row = self._db.execute(
                "SELECT resource, config FROM creation WHERE urn = ? AND resource IS NOT NULL", (urn,)
            ).fetchone()
        record = self._one("key = ?", row[0]) if row else None
        return (record, self._unseal(row[1])) if record else None

    def confirm(self, type: str, urn: str, id: str) -> None:
        """Confirm a resource: an engine used its id (with another URN, if an alias renamed it)."""
        with self._lock:
            found = self._db.execute(
                "SELECT urn FROM creation WHERE id = ? AND type = ? AND resource IS NOT NULL", (id, type)
            ).fetchall()
        urns = [row[0] for row in found]
        if urns:
            known = [urn] if urn in urns else urns
            with self.transaction():
                self._db.executemany("DELETE FROM creation WHERE urn = ?", [(one,) for one in known])

    # -- identifiers and references --------------------------------------------------------------------

    def issue(self, record: Record, identifiers: set[str]) -> None:
        """Make `identifiers` (id, ARN, name) the values by which others refer to this resource."""
        with self.transaction():
            self._db.execute("DELETE FROM identifier WHERE resource = ?", (record.key,))
            self._db.executemany(
                "INSERT OR IGNORE INTO identifier VALUES (?, ?, ?)",
                [(value, record.scope, record.key) for value in identifiers],
            )

    def issued(self, value: str) -> list[Record]:
        """The resources known under `value`, in any scope."""
        return self._all("key IN (SELECT resource FROM identifier WHERE value = ?)", value)

    def refer(self, user: Record, used: dict[str, Record]) -> None:
        """Replace what `user` refers to: property path -> resource."""
        with self.transaction():
            self._db.execute("DELETE FROM reference WHERE user = ?", (user.key,))
            self._db.executemany(
                "INSERT OR IGNORE INTO reference VALUES (?, ?, ?)",
                [(user.key, record.key, path) for path, record in used.items()],
            )

    def users(self, used: Record) -> list[Reference]:
        """References to a resource."""
        columns = ", ".join(f"resource.{column}" for column in _COLUMNS.split(", "))
        with self._lock:
            rows = self._db.execute(
                f"SELECT {columns}, reference.path FROM reference "  # noqa: S608 - no user text
                "JOIN resource ON resource.key = reference.user WHERE used = ? ORDER BY user",
                (used.key,),
            ).fetchall()
        return [Reference(self._record(row), used, row[9]) for row in rows]

    # -- documents -------------------------------------------------------------------------------------

    def put_document(self, space: str, key: str, value: Any) -> None:
        """Store a JSON value under a key, such as the value of a secret or an allocated address."""
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO document VALUES (?, ?, ?)", (space, key, self._seal(value))
            )

    def document(self, space: str, key: str) -> Any:
        """The value under a key, or None."""
        with self._lock:
            row = self._db.execute(
                "SELECT value FROM document WHERE space = ? AND key = ?", (space, key)
            ).fetchone()
        return self._unseal(row[0]) if row else None

    def documents(self, space: str) -> dict[str, Any]:
        """Every key and value of a space."""
        with self._lock:
            rows = self._db.execute("SELECT key, value FROM document WHERE space = ? ORDER BY key", (space,))
            return {key: self._unseal(value) for key, value in rows.fetchall()}

    def drop_document(self, space: str, key: str) -> None:
        """Remove a key, if present."""
        with self.transaction():
            self._db.execute("DELETE FROM document WHERE space = ? AND key = ?", (space, key))

    # --------------------------------------------------------------------------------------------------

    def _one(self, where: str, *values: object) -> Record | None:
        found = self._all(where, *values)
        return found[0] if found else None

    def _all(self, where: str, *values: object) -> list[Record]:
        with self._lock:
            rows = self._db.execute(
                f"SELECT {_COLUMNS} FROM resource WHERE {where} ORDER BY key",  # noqa: S608 - no user text
                values,
            ).fetchall()
        return [self._record(row) for row in rows]

    def _record(self, row: tuple[Any, ...]) -> Record:
        return Record(
            key=row[0],
            package=row[1],
            type=row[2],
            scope=row[3],
            id=row[4],
            urn=row[5],
            name=row[6],
            inputs=self._unseal(row[7]),
            outputs=self._unseal(row[8]),
        )
