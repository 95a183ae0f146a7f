"""Record of the upgrades of the tracking server's tables, in a table beside them.

It is written before servers stop, so that an upgrade that was killed is known to the next Job.
"""

import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

Revisions = dict[str, str | None]

_TABLE = "trainstack_upgrades"
_COLUMNS = ("at", "version", "revisions_before", "revisions_after", "snapshot", "state")
# States of an upgrade; one that was killed stays `started`.
STARTED, DONE, UNCHANGED = "started", "done", "unchanged"


@dataclass(frozen=True)
class Record:
    """The record, by new connections: one of before an upgrade was idle for as long as that took."""

    connect: Callable[[], AbstractContextManager[Any]]

    def begin(self, version: str, before: Revisions, after: Revisions) -> str:
        """Add an upgrade; returns its time, which identifies it."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        values = (at, version, json.dumps(before), json.dumps(after), "", STARTED)
        columns = ", ".join(f"{column} TEXT" for column in _COLUMNS)
        insert = f"INSERT INTO {_TABLE} VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"  # noqa: S608
        with self.connect() as connection:
            connection.execute(_text(f"CREATE TABLE IF NOT EXISTS {_TABLE} ({columns})"))
            connection.execute(_text(insert), dict(zip(_COLUMNS, values, strict=True)))
            connection.commit()
        return at

    def mark(self, at: str, **changes: str) -> None:
        """Change the `state` or the `snapshot` of an upgrade."""
        change = ", ".join(f"{column} = :{column}" for column in changes)
        with self.connect() as connection:
            connection.execute(_text(f"UPDATE {_TABLE} SET {change} WHERE at = :at"), {"at": at, **changes})  # noqa: S608
            connection.commit()

    def started(self) -> list[tuple[str, Revisions, Revisions]]:
        """Time and revisions, before and after, of upgrades that did not end."""
        rows = self._rows("at, revisions_before, revisions_after", f"state = '{STARTED}'")
        return [(at, json.loads(before), json.loads(after)) for at, before, after in rows]

    def way_back(self, known: Mapping[str, Sequence[str]]) -> str:
        """The last snapshot whose revisions are known, in words."""
        fitting = [
            (at, snapshot)
            for at, before, snapshot in self._rows(
                "at, revisions_before, snapshot", f"state <> '{UNCHANGED}'"
            )
            if all(revision in (None, *known.get(name, ())) for name, revision in json.loads(before).items())
        ]
        at, snapshot = max(fitting, default=("", ""))
        return f"snapshot {snapshot} of {at}" if snapshot else f"a backup from before {at or 'the upgrade'}"

    def _rows(self, columns: str, condition: str) -> list[Any]:
        sqlalchemy: Any = importlib.import_module("sqlalchemy")
        with self.connect() as connection:
            if not sqlalchemy.inspect(connection).has_table(_TABLE):
                return []
            return list(connection.execute(_text(f"SELECT {columns} FROM {_TABLE} WHERE {condition}")))  # noqa: S608


def _text(statement: str) -> Any:
    return importlib.import_module("sqlalchemy").text(statement)
