"""Stores books in ConfigMaps in the namespace of the team, which its members read; runs in a pod."""

import base64
import datetime
import gzip
import zlib
from collections.abc import Mapping
from typing import Any

from agents.gpu_ledger import book_text
from agents.gpu_ledger.archive import Archive, ArchivePart, compressed
from agents.gpu_ledger.attempts import month_end
from agents.gpu_ledger.entries import Note
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.sharing import NONE_SHARED, SharedPools
from agents.shared.api_server import ApiServer, ApiServerError
from agents.shared.times import stamp

NAME, KEY = "gpu-ledger", "book.json.gz"
# Of books and archives of schema 1, which were not compressed.
_OLD_KEY = "book.json"
# Labels of objects that the stack puts into a team's namespace: a policy lets members only read them
# (components/kubernetes/queueing/tenancy.py, `GIVEN_LABEL`).
_LABELS = {"trainstack.dev/given": "yes", "app.kubernetes.io/name": NAME}
# A book has today's rows and those of the day before: jobs whose end was not observed add to them.
_KEPT = datetime.timedelta(days=1)
_CONFLICT, _MISSING = 409, 404


class ChangedError(Exception):
    """Another process wrote the book: the one in memory may count twice, and is dropped."""


class BookStore:
    """The books of a cluster, written as a whole, and only over the version that was read.

    Every method raises ApiServerError and OSError as `ApiServer` does.
    """

    def __init__(self, server: ApiServer, shared: SharedPools = NONE_SHARED) -> None:
        self._server, self._shared = server, shared
        self._versions: dict[str, str] = {}
        self._reserved: set[tuple[str, str]] = set()

    def read(self, namespace: str, team: str, now: int) -> TeamBook:
        """The book of a namespace, a new one where there is none. Raises ValueError for an unreadable one."""
        found = self._get(namespace, NAME)
        if found is None:
            self._versions.pop(namespace, None)
            return TeamBook(team, now)
        self._versions[namespace] = found["metadata"]["resourceVersion"]
        book = book_text.parse(text_of(found))
        self._shared.renew(book)
        return book

    def write(self, namespace: str, book: TeamBook) -> int:
        """Store a book; returns its size in bytes. Raises ChangedError when another process wrote it."""
        content = compressed(book_text.text(book))
        body = _config_map(NAME, namespace, content)
        version = self._versions.get(namespace)
        try:
            if version is None:
                kept = self._server.must("POST", _path(namespace), body)
            else:
                metadata = {**body["metadata"], "resourceVersion": version}
                kept = self._server.must("PUT", _path(namespace, NAME), {**body, "metadata": metadata})
        except ApiServerError as error:
            if error.status in (_CONFLICT, _MISSING):
                raise ChangedError(f"{namespace}: {error}") from error
            raise
        self._versions[namespace] = kept["metadata"]["resourceVersion"]
        return len(content)

    def archive(self, namespace: str, book: TeamBook, now: int) -> bool:
        """Move rows of past days into the ConfigMaps of their months, `gpu-ledger-2026-11`.

        Returns whether there were any; then the book has to be written next. In memory it is changed only
        after all archives are written. Raises ValueError for an archive that is not the listed one.
        """
        today = datetime.datetime.fromtimestamp(min(now, book.seen), datetime.UTC)
        midnight = datetime.datetime.combine((today - _KEPT).date(), datetime.time(), datetime.UTC)
        day = midnight.date().isoformat()
        book.advance(int(midnight.timestamp()))
        past = ArchivePart(*book.before(day))
        for month in sorted({row.day[:7] for row in past.rows} | {row[0][:7] for row in past.uncertain}):
            number = book.archived.get(month, 0)
            found = self._get(namespace, f"{NAME}-{month}")
            base = self._base(found, book, month, number)
            made = Archive(book.team, number + 1, base, past.of(month), book.terms, book.begun)
            body = _config_map(f"{NAME}-{month}", namespace, made.content())
            if found is None:
                self._server.must("POST", _path(namespace), body)
            else:
                self._server.must("PUT", _path(namespace, f"{NAME}-{month}"), body)
        book.archive(day)
        return bool(past.rows or past.uncertain)

    def reserve(self, namespace: str, book: TeamBook, now: int) -> bool:
        """Create empty archives of this month and the next where there are none.

        Returns whether anything was requested.

        The quota of a namespace counts ConfigMaps: a member who uses it up cannot stop a later archive, for
        which then only a change is needed.
        """
        months = {(namespace, stamp(at)[:7]) for at in (now, month_end(now))} - self._reserved
        for _, month in sorted(months):
            made = Archive(book.team, 0, ArchivePart(), ArchivePart(), book.terms, book.begun)
            body = _config_map(f"{NAME}-{month}", namespace, made.content())
            status, found = self._server.ask("POST", _path(namespace), body)
            if status >= 300 and status != _CONFLICT:
                raise ApiServerError(status, str(found.get("message")))
            self._reserved.add((namespace, month))
        return bool(months)

    def _base(self, found: Mapping[str, Any] | None, book: TeamBook, month: str, number: int) -> ArchivePart:
        """The archived rows that the book lists. A deleted archive is noted; another one is left as it is."""
        old = Archive.parse(text_of(found)) if found else None
        if not number:
            # A crash before the book was written leaves one, which is made again. Where the book was deleted,
            # and began anew, the archives of the old one are all that is left of it.
            if old and old.number and old.begun not in (0, book.begun):
                raise ValueError(f"{NAME}-{month} is of a book that was deleted: rename it")
            return ArchivePart()
        if old is None:
            book.note(Note(book.seen, "lost", f"{NAME}-{month}", "the archive was deleted"))
            return ArchivePart()
        return self._shared.archived(old.at(number), old.terms)

    def _get(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        status, found = self._server.ask("GET", _path(namespace, name))
        if status == _MISSING:
            return None
        if status >= 300:
            raise ApiServerError(status, str(found.get("message")))
        return found


def text_of(config_map: Mapping[str, Any]) -> str:
    """The text of a book or an archive. Raises ValueError for a ConfigMap without one."""
    packed = (config_map.get("binaryData") or {}).get(KEY)
    if packed is not None:
        try:
            return gzip.decompress(base64.b64decode(packed)).decode()
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{KEY} is not compressed with gzip: {error}") from error
    plain = (config_map.get("data") or {}).get(_OLD_KEY)
    if plain is None:
        raise ValueError(f"has no key {KEY}")
    return str(plain)


def _config_map(name: str, namespace: str, content: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "binaryData": {KEY: base64.b64encode(content).decode()},
    }


def _path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")
