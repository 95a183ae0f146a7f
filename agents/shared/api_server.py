"""The API server as a program in a pod reaches it, and how such a program ends; standard library only."""

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

# What the kubelet keeps of a termination message (pkg/kubelet/container/runtime.go).
MESSAGE_BYTES = 4096
# An API server that has just started, or has not heard of a new role yet, forbids what is allowed.
FORBIDDEN_S = 15.0
# Longer than an API server waits for the webhooks of one request, 10 s each: its words say more than silence.
_REQUEST_S = 30.0
_JSON, _MERGE = "application/json", "application/merge-patch+json"
# Objects of one page: an API server answers lists of any length, at the price of its memory.
_PAGE = 500


class RefusedError(Exception):
    """The API server answers with anything but success: its status, and its words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"{status} {words}")
        self.status = status


class ApiServer:
    """The API server of the pod's cluster, asked as the pod's service account.

    `account` is the folder with the account's `token` and the server's authority, `ca.crt`.
    """

    def __init__(self, account: Path) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self.address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._account = account
        self._heard: tuple[float, float] | None = None  # its clock, and this machine's steady one
        self._context = ssl.create_default_context(cafile=str(account / "ca.crt"))

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """The HTTP status and the answer, on a connection of its own.

        Raises OSError when the server cannot be reached, or breaks off.
        """
        try:
            with self._opened(method, path, body, _REQUEST_S) as answer:
                return answer.status, _read(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _read(error.read())
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error

    def now(self) -> int:
        """The server's clock, in whole seconds since 1970: that of its last answer, and the time since.

        Raises OSError.
        """
        if self._heard is None:
            self.ask("GET", "/version")
        if self._heard is None:
            raise OSError("the API server does not say what time it is")
        said, at = self._heard
        return int(said + time.monotonic() - at)

    def must(self, method: str, path: str, body: Object | None = None) -> Object:
        """The answer. Raises RefusedError when it is no success, OSError as `ask`."""
        status, found = self.ask(method, path, body)
        if status >= 300:
            raise RefusedError(status, str(found.get("message") or found))
        return found

    def every(self, path: str, **selectors: str) -> Iterator[Object]:
        """The objects of a kind, one after the other; as `paged`."""
        for page, _ in self.paged(path, **selectors):
            yield from page

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[Sequence[Object], str]]:
        """The objects of a kind, at most `_PAGE` at once, each time with the resourceVersion of the list.

        Who keeps no page has no more in memory than one of them. `selectors`: labelSelector, fieldSelector.
        Raises RefusedError (410 when a page came too late: list again) and OSError, also between pages.
        """
        asked = {"limit": str(_PAGE), **selectors}
        while True:
            page = self.must("GET", f"{path}?{urllib.parse.urlencode(asked)}")
            metadata = page.get("metadata") or {}
            yield page.get("items") or (), str(metadata.get("resourceVersion") or "")
            if not metadata.get("continue"):
                return
            asked = {**asked, "continue": str(metadata["continue"])}

    def watched(self, path: str, version: str, seconds: float, **selectors: str) -> Iterator[Object]:
        """Changes since `version`, as `{"type": ADDED|MODIFIED|DELETED|BOOKMARK, "object": ...}`.

        Ends after `seconds`, or when the server ends it; go on from the last object's resourceVersion. Raises
        RefusedError with status 410 when changes since `version` are gone: list again. Raises OSError.
        """
        asked = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(seconds))),
            **selectors,
        }
        try:
            # A connection that died without a word is noticed by the time-out.
            limit_s = seconds + _REQUEST_S
            with self._opened("GET", f"{path}?{urllib.parse.urlencode(asked)}", None, limit_s) as answer:
                for line in answer:
                    change = _read(line)
                    if change.get("type") == "ERROR":
                        said = change.get("object") or {}
                        raise RefusedError(int(said.get("code") or 500), str(said.get("message")))
                    yield change
        except urllib.error.HTTPError as error:
            raise RefusedError(error.code, str(_read(error.read()).get("message"))) from error
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error

    def _opened(self, method: str, path: str, body: Object | None, limit_s: float) -> Any:
        """The open answer. A PATCH is a merge patch (RFC 7386), which every kind of object knows."""
        # Read every time: the kubelet renews it.
        token = (self._account / "token").read_text(encoding="utf-8").strip()
        kind = _MERGE if method == "PATCH" else _JSON
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)  # noqa: S310
        try:
            answer = urllib.request.urlopen(request, timeout=limit_s, context=self._context)  # noqa: S310
        except urllib.error.HTTPError as refusal:
            self._hear(refusal.headers.get("Date"))
            raise
        self._hear(answer.headers.get("Date"))
        return answer

    def _hear(self, date: str | None) -> None:
        if date:
            self._heard = (email.utils.parsedate_to_datetime(date).timestamp(), time.monotonic())


def _read(content: bytes) -> Object:
    """An object; what is none, such as the words of a proxy, becomes the message of one."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"message": content.decode(errors="replace")[:500]}


def say(text: str) -> None:
    """One line of the pod's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def finish(text: str, message: Path, *, passed: bool) -> int:
    """Leave `text` as the container's termination message, the file `message`; the exit code."""
    say(text)
    # Cut at a byte of the limit, never within a letter.
    kept = text.encode()[:MESSAGE_BYTES].decode(errors="ignore")
    message.write_text(kept, encoding="utf-8")
    return 0 if passed else 1
