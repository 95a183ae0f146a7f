"""Client of the Kubernetes API server for programs in pods; log lines and termination messages."""

import email.utils
import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Object = Mapping[str, Any]

# Limit of a termination message (pkg/kubelet/container/runtime.go).
MESSAGE_BYTES = 4096
# An API server that has just started, or has not received a new role yet, denies requests that are allowed.
FORBIDDEN_S = 15.0
# Longer than an API server waits for the webhooks of one request, 10 s each, so that its error is received.
_REQUEST_S = 30.0
_JSON, _MERGE = "application/json", "application/merge-patch+json"
# Errors of a reader that expects another form of object.
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
# Bytes of an answer in an error.
_SHOWN = 200
# Objects of one page: an API server returns lists of any length, at the price of its memory.
_PAGE = 500


class ApiServerError(Exception):
    """The API server returned an error: status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class ApiServer:
    """The API server of the pod's cluster, with the pod's service account.

    `account` is the folder with the account's `token` and the server's authority, `ca.crt`.
    """

    def __init__(self, account: Path) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self.address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._account = account
        self._clock: tuple[float, float] | None = None  # its time, and this machine's monotonic clock
        self._context = ssl.create_default_context(cafile=str(account / "ca.crt"))

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """Send a request; returns the HTTP status and the response.

        A PATCH is a merge patch (RFC 7386), which every kind of object supports. Raises OSError when the
        server cannot be reached or the connection breaks.
        """
        return self._answered(method, path, body, _MERGE if method == "PATCH" else _JSON)

    def _answered(self, method: str, path: str, body: Object | None, kind: str) -> tuple[int, Object]:
        """As `ask`, with a body of the type `kind`."""
        try:
            with self._opened(method, path, body, _REQUEST_S, kind) as response:
                return response.status, _read(response.read())
        except urllib.error.HTTPError as error:
            return error.code, _read(refusal(error))
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error

    def now(self) -> int:
        """The server's clock, in whole seconds since 1970: the time of its last response and the time since.

        Raises OSError.
        """
        if self._clock is None:
            self.ask("GET", "/version")
        if self._clock is None:
            raise OSError("the API server returns no Date header")
        date, at = self._clock
        return int(date + time.monotonic() - at)

    def must(self, method: str, path: str, body: Object | None = None) -> Object:
        """The response. Raises ApiServerError when it is an error, OSError as `ask`."""
        status, found = self.ask(method, path, body)
        if status >= 300:
            raise ApiServerError(status, str(found.get("message") or found))
        return found

    def every(self, path: str, **selectors: str) -> Iterator[Object]:
        """Iterate over the objects of a kind, as `paged`."""
        for page, _ in self.paged(path, **selectors):
            yield from page

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[Sequence[Object], str]]:
        """The objects of a kind, at most `_PAGE` at once, each time with the resourceVersion of the list.

        Only one page at a time is in memory. `selectors`: labelSelector, fieldSelector. Raises ApiServerError
        (410 when a page was requested too late: list again) and OSError, also between pages.
        """
        asked = {"limit": str(_PAGE), **selectors}
        while True:
            page = self.must("GET", f"{path}?{urllib.parse.urlencode(asked)}")
            metadata = page.get("metadata") or {}
            yield page.get("items") or (), str(metadata.get("resourceVersion") or "")
            if not metadata.get("continue"):
                return
            asked = {**asked, "continue": str(metadata["continue"])}

    def version(self, path: str) -> str:
        """The current resourceVersion of a kind, from which its changes can be watched. Raises as `must`."""
        found = self.must("GET", f"{path}?limit=1")
        return str((found.get("metadata") or {}).get("resourceVersion") or "")

    def watched(self, path: str, version: str, seconds: float, **selectors: str) -> Iterator[Object]:
        """Changes since `version`, as `{"type": ADDED|MODIFIED|DELETED|BOOKMARK, "object": ...}`.

        Ends after `seconds` or when the server ends it; continue from the last object's resourceVersion.
        Raises ApiServerError (410: changes since `version` are gone, list again) and OSError, also for a line
        that is no change: one torn by a broken connection, or the list of a server that does not watch.
        """
        asked = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(seconds))),
            **selectors,
        }
        try:
            # The time-out detects a connection that broke silently.
            limit_s = seconds + _REQUEST_S
            with self._opened("GET", f"{path}?{urllib.parse.urlencode(asked)}", None, limit_s) as response:
                for line in response:
                    change = _read(line)
                    if change.get("type") == "ERROR":
                        status = change.get("object") or {}
                        raise ApiServerError(int(status.get("code") or 500), str(status.get("message")))
                    if "type" not in change or not isinstance(change.get("object"), dict):
                        raise OSError(f"no change of {path}: {line[:_SHOWN].decode(errors='replace')}")
                    yield change
        except urllib.error.HTTPError as error:
            raise ApiServerError(error.code, str(_read(refusal(error)).get("message"))) from error
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error

    def _opened(self, method: str, path: str, body: Object | None, limit_s: float, kind: str = _JSON) -> Any:
        """The open response."""
        # Read every time: the kubelet renews it.
        token = (self._account / "token").read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)  # noqa: S310
        try:
            response = urllib.request.urlopen(request, timeout=limit_s, context=self._context)  # noqa: S310
        except urllib.error.HTTPError as refusal:
            self._set_clock(refusal.headers.get("Date"))
            raise
        self._set_clock(response.headers.get("Date"))
        return response

    def _set_clock(self, date: str | None) -> None:
        if date:
            self._clock = (email.utils.parsedate_to_datetime(date).timestamp(), time.monotonic())


def _read(content: bytes) -> Object:
    """The object in a response; other content, such as a text of a proxy, becomes its `message`."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": content.decode(errors="replace")[:500]}


def refusal(error: urllib.error.HTTPError) -> bytes:
    """The content of an error's response, or what came of it before the connection broke. Raises OSError."""
    try:
        return error.read()
    except http.client.IncompleteRead as broken:
        return broken.partial


def say(text: str) -> None:
    """Write one line of the pod's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def finish(text: str, message: Path, *, passed: bool) -> int:
    """Write `text` as the container's termination message, the file `message`; returns the exit code."""
    say(text)
    # Cut at the limit in bytes, never within a character.
    kept = text.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    message.write_text(kept, encoding="utf-8")
    return 0 if passed else 1
