"""Stores books in ConfigMaps in the namespace of the team, which its members read; runs in a pod."""

import datetime
from collections.abc import Mapping
from typing import Any

from agents.gpu_ledger.archive import Archive
from agents.gpu_ledger.ledger import TeamBook
from agents.shared.api_server import ApiServer, ApiServerError

NAME, KEY = "gpu-ledger", "book.json"
# Labels of objects that the stack puts into a team's namespace: a policy lets members only read them
# (components/kubernetes/queueing/tenancy.py, `GIVEN_LABEL`).
_LABELS = {"trainstack.dev/given": "yes", "app.kubernetes.io/name": NAME}
# Rows of a month may be added for this long after its end: jobs whose end was not observed.
_ARCHIVE_AFTER = datetime.timedelta(hours=1)
_CONFLICT, _MISSING = 409, 404


class ChangedError(Exception):
    """Another process wrote the book: the one in memory may count twice, and is dropped."""


class BookStore:
    """The books of a cluster, written as a whole, and only over the version that was read."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._versions: dict[str, str] = {}

    def read(self, namespace: str, team: str, now: int) -> TeamBook:
        """The book of a namespace, a new one where there is none. Raises ApiServerError and OSError."""
        status, found = self._server.ask("GET", _path(namespace, NAME))
        if status == _MISSING:
            self._versions.pop(namespace, None)
            return TeamBook(team, now)
        if status >= 300:
            raise ApiServerError(status, str(found.get("message")))
        self._versions[namespace] = found["metadata"]["resourceVersion"]
        return TeamBook.parse(found["data"][KEY])

    def write(self, namespace: str, book: TeamBook) -> int:
        """Store a book; returns its size in bytes. Raises ChangedError, ApiServerError and OSError."""
        text = book.text()
        body = _config_map(NAME, namespace, text)
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
        return len(text)

    def archive(self, namespace: str, book: TeamBook, now: int) -> None:
        """Move months that are over into ConfigMaps of their own, `gpu-ledger-2026-11`.

        The archive is written first; until the book lists the month (`archived`), it is not read, and a retry
        writes it again. Raises as `write` does.
        """
        today = datetime.datetime.fromtimestamp(now, datetime.UTC)
        this = f"{today - _ARCHIVE_AFTER:%Y-%m}"
        for month in sorted({key[0][:7] for key in book.rows} - set(book.archived)):
            if month < this:
                # Without running attempts: those become rows of that month when they end.
                text = Archive(book.team, book.over(month), book.terms).text()
                self._put(_config_map(f"{NAME}-{month}", namespace, text))
                book.take(month)
                self.write(namespace, book)

    def _put(self, body: Mapping[str, Any]) -> None:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            self._server.must("POST", _path(namespace), body)
        except ApiServerError as error:
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
