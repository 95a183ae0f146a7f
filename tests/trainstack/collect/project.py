"""A project of Google Cloud that a test fills, as its APIs answer: page by page, and what is refused.

The same answers come from memory (`Project.session`), or from a server on this machine (`Project.served`).
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from infra.clouds.gcp.login import retries

ID, NUMBER = "example", "746918459997"
BILLING = "billingAccounts/000000-000000-000000"
TIME = "2026-11-24T02:00:00Z"
Reply = tuple[int, Any]
"""Status and body: an object, or bytes as they are."""
Answer = Callable[[Mapping[str, Any]], Reply]


class Cut(bytes):
    """A body of which a part does not arrive."""


def refused(status: int, code: str, message: str = "", **info: Any) -> Reply:
    """How Google refuses (google.rpc.Status)."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", **info}] if info else []
    return status, {"error": {"code": status, "status": code, "message": message or code, "details": details}}


def denied(_: Mapping[str, Any]) -> Reply:
    """What is said to who has not the right."""
    return refused(403, "PERMISSION_DENIED", "Permission denied on resource")


def disabled(consumer: str, service: str = "cloudasset.googleapis.com") -> Reply:
    """What is said where the API is switched off, in the project that asks or in another."""
    said = f"{service} has not been used in project {consumer} before or it is disabled."
    metadata = {"service": service, "consumer": f"projects/{consumer}"}
    return refused(403, "PERMISSION_DENIED", said, reason="SERVICE_DISABLED", metadata=metadata)


class Project:
    """What is in it, by asset type or by method; `said` answers for one of these instead."""

    def __init__(self, said: Mapping[str, Answer] | None = None, page: int = 1000) -> None:
        self.assets: dict[str, list[dict[str, Any]]] = {}
        self.policies: list[dict[str, Any]] = []
        self.policy: dict[str, Any] = {"bindings": []}
        self.above: list[tuple[str, str]] = []
        self.above_policy: dict[str, Any] = {"bindings": []}
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.said = dict(said or {})
        self.page = page
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def add(self, type: str, name: str, data: dict[str, Any]) -> None:
        """An asset with the data that its own API has of it."""
        row = {"name": name, "assetType": type, "resource": {"version": "v1", "data": data}}
        self.assets.setdefault(type, []).append(row)

    def answer(self, verb: str, address: str, body: bytes) -> Reply:
        """What Google says to a request."""
        parts = urlsplit(address)
        given: dict[str, Any] = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        path = f"{parts.netloc}{parts.path}"
        key, reply = self._found(path, given, json.loads(body or b"{}"))
        self.asked.append((key, given))
        return self.said[key](given) if key in self.said else reply()

    def _found(self, path: str, given: dict[str, Any], body: Any) -> tuple[str, Callable[[], Reply]]:
        host, _, rest = path.partition(".googleapis.com/")
        if host == "cloudasset":
            assert rest == f"v1/projects/{ID}/assets"
            kind, rows = given["assetTypes"], self.assets.get(given["assetTypes"], [])
            if given["contentType"] == "IAM_POLICY":
                kind, rows = f"policies of {kind}", self.policies
            return kind, lambda: self._paged("assets", rows, given, readTime=TIME)
        if rest.endswith(":getIamPolicy"):
            assert body == {"options": {"requestedPolicyVersion": 3}}
            own = rest == f"v3/projects/{ID}:getIamPolicy"
            return rest, lambda: (200, self.policy if own else self.above_policy)
        fixed: dict[str, Any] = {
            f"v1/projects/{ID}": {"projectId": ID, "projectNumber": NUMBER, "lifecycleState": "ACTIVE"},
            f"v1/projects/{ID}:getAncestry": {
                "ancestor": [{"resourceId": {"type": level, "id": own}} for level, own in self._levels()]
            },
            f"v1/projects/{ID}/billingInfo": {"billingAccountName": BILLING, "billingEnabled": True},
        }
        if host in ("cloudresourcemanager", "cloudbilling"):
            return (
                f"{host}/{rest}",
                lambda: (200, fixed[rest]) if rest in fixed else refused(404, "NOT_FOUND"),
            )
        key = {"hmacKeys": "items"}.get(rest.rpartition("/")[2], rest.rpartition("/")[2])
        return f"{host}/{rest}", lambda: self._paged(key, self.rows.get(f"{host}/{rest}", []), given)

    def _levels(self) -> list[tuple[str, str]]:
        return [("project", ID), *self.above]

    def _paged(self, key: str, rows: list[Any], given: Mapping[str, Any], **more: Any) -> Reply:
        start = int(given.get("pageToken") or 0)
        end = start + self.page
        further = {"nextPageToken": str(end)} if end < len(rows) else {}
        return 200, {key: rows[start:end], **further, **more}

    def session(self) -> requests.Session:
        """One whose requests are answered from memory."""
        made = requests.Session()
        made.mount("https://", _Memory(self))
        return made

    @contextmanager
    def served(self, attempts: int = 1) -> Iterator[requests.Session]:
        """One whose requests go to a server on this machine, as often as a collector asks."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with requests.Session() as made:
                made.mount("https://", _Redirected(server.server_port, attempts))
                yield made
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Memory(BaseAdapter):
    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        body = request.body if isinstance(request.body, bytes) else b""
        status, said = self._project.answer(str(request.method), str(request.url), body)
        made = requests.Response()
        made.request, made.url = request, str(request.url)
        made.status_code, made._content = status, _bytes(said)
        return made

    def close(self) -> None:
        pass


class _Redirected(HTTPAdapter):
    """Sends to a port here what is meant for Google."""

    def __init__(self, port: int, attempts: int) -> None:
        super().__init__(max_retries=retries(attempts))
        self._base = f"http://127.0.0.1:{port}/"

    def send(self, request: requests.PreparedRequest, **rest: Any) -> requests.Response:  # type: ignore[override]
        request.url = str(request.url).replace("https://", self._base, 1)
        return super().send(request, **rest)


def _handler(project: Project) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            address = f"https:/{self.path}"
            status, said = project.answer(self.command, address, self.rfile.read(length))
            body = _bytes(said)
            self.send_response(status)
            cut = isinstance(said, Cut)  # announces more than it sends
            self.send_header("Content-Length", str(len(body) + 100 * cut))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the library dictates it

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _bytes(said: Any) -> bytes:
    return said if isinstance(said, bytes) else json.dumps(said).encode()
