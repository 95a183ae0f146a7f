"""Where books are kept: ConfigMaps in the namespace of the team, which its members read; runs in a pod."""

import datetime
from collections.abc import Mapping
from typing import Any

from agents.gpu_ledger.archive import Archive
from agents.gpu_ledger.ledger import Book
from agents.shared.api_server import ApiServer, RefusedError

NAME, KEY = "gpu-ledger", "book.json"
# What the stack puts into a team's namespace: a policy lets members read it and not change it
# (components/kubernetes/queueing/tenancy.py, `GIVEN_LABEL`).
_LABELS = {"trainstack.dev/given": "yes", "app.kubernetes.io/name": NAME}
# Rows of a month may still come for as long after its end: jobs that ended while nobody looked.
_ARCHIVE_AFTER = datetime.timedelta(hours=1)
_CONFLICT, _MISSING = 409, 404


class ChangedError(Exception):
    """Somebody else wrote the book: what is in memory may count twice, and is thrown away."""


class Shelf:
    """The books of a cluster, each written whole, and only over the version that was read."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._versions: dict[str, str] = {}

    def read(self, namespace: str, team: str, now: int) -> Book:
        """The book of a namespace, a new one where there is none. Raises RefusedError and OSError."""
        status, found = self._server.ask("GET", _path(namespace, NAME))
        if status == _MISSING:
            self._versions.pop(namespace, None)
            return Book(team, now)
        if status >= 300:
            raise RefusedError(status, str(found.get("message")))
        self._versions[namespace] = found["metadata"]["resourceVersion"]
        return Book.parse(found["data"][KEY])

    def write(self, namespace: str, book: Book) -> int:
        """Keep a book; how many bytes it has. Raises ChangedError, RefusedError and OSError."""
        text = book.text()
        body = _config_map(NAME, namespace, text)
        version = self._versions.get(namespace)
        try:
            if version is None:
                kept = self._server.must("POST", _path(namespace), body)
            else:
                metadata = {**body["metadata"], "resourceVersion": version}
                kept = self._server.must("PUT", _path(namespace, NAME), {**body, "metadata": metadata})
        except RefusedError as error:
            if error.status in (_CONFLICT, _MISSING):
                raise ChangedError(f"{namespace}: {error}") from error
            raise
        self._versions[namespace] = kept["metadata"]["resourceVersion"]
        return len(text)

    def archive(self, namespace: str, book: Book, now: int) -> None:
        """Move months that are over into ConfigMaps of their own, `gpu-ledger-2026-11`.

        The archive is written first; until the book says that the month is there (`archived`), nobody reads
        it, and a second try writes it anew. Raises as `write` does.
        """
        today = datetime.datetime.fromtimestamp(now, datetime.UTC)
        this = f"{today - _ARCHIVE_AFTER:%Y-%m}"
        for month in sorted({key[0][:7] for key in book.rows} - set(book.archived)):
            if month < this:
                # Without attempts that go on: theirs come as rows of that month when they end.
                text = Archive(book.team, book.over(month), book.terms).text()
                self._put(_config_map(f"{NAME}-{month}", namespace, text))
                book.take(month)
                self.write(namespace, book)

    def _put(self, body: Mapping[str, Any]) -> None:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            self._server.must("POST", _path(namespace), body)
        except RefusedError as error:
            if error.status != _CONFLICT:
                raise
            self._server.must("PUT", _path(namespace, name), body)


def _config_map(name: str, namespace: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "data": {KEY: text},
    }


def _path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")
