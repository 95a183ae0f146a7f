"""Requests that the MLflow server of a stack accepts; an ASGI application around MLflow's own.

MLflow serves much more than tracking: an assistant that runs commands for clients on the loopback, a gateway
and webhooks that send requests, jobs that run code of scorers. A port-forward ends on the pod's loopback, so
its peer is no proof of anything. Here each route is listed, and everything else is refused; the list is that
of mlflow 3.17.2 (`server/handlers.py`, `server/auth/routes.py`).

`with_users` and `without_users` are application factories for `mlflow server --app-name`, registered as
MLflow's documented plug-in `mlflow.app` (`plugin`). Standard library and MLflow only.
"""

import base64
import importlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Routes below /api/<version>/mlflow/ and /ajax-api/<version>/mlflow/; `*` is one segment, `**` is the rest.
MEMBERS = _listed("""
artifacts/list
experiments/create experiments/delete experiments/delete-experiment-tag experiments/get
experiments/get-by-name experiments/restore experiments/search experiments/search-datasets
experiments/set-experiment-tag experiments/update
get-online-trace-details unified-traces
logged-models logged-models/* logged-models/*/artifacts/directories logged-models/*/artifacts/files
logged-models/*/params logged-models/*/tags logged-models/*/tags/* logged-models/search
metrics/get-history metrics/get-history-bulk metrics/get-history-bulk-interval
model-versions/create model-versions/delete model-versions/delete-tag model-versions/get
model-versions/get-download-uri model-versions/search model-versions/set-tag
model-versions/transition-stage model-versions/update
registered-models/alias registered-models/create registered-models/delete registered-models/delete-tag
registered-models/get registered-models/get-latest-versions registered-models/rename
registered-models/search registered-models/set-tag registered-models/update
runs/create runs/delete runs/delete-tag runs/get runs/log-batch runs/log-inputs runs/log-metric
runs/log-model runs/log-parameter runs/outputs runs/restore runs/search runs/set-tag runs/update
server-info
traces traces/* traces/*/assessments traces/*/assessments/* traces/*/info traces/*/tags traces/batchGet
traces/batchGetInfos traces/calculate-filter-correlation traces/delete-traces traces/get
traces/link-prompts traces/link-to-run traces/metrics traces/search
ui-telemetry upload-artifact users/current users/current/permissions
""")
# The same, for MLflow's administrator: users and their permissions.
ADMINISTRATOR = _listed("""
users/create users/delete users/get users/list users/update-admin users/update-password
users/permissions/get users/permissions/grant users/permissions/list users/permissions/revoke
users/roles/list
roles/assign roles/create roles/delete roles/get roles/list roles/permissions/add roles/permissions/list
roles/permissions/remove roles/permissions/update roles/unassign roles/update roles/users/list
""")
# Routes that are not below these folders.
OTHERS = _listed("""
/ /health /version /static-files/** /graphql /get-artifact /model-versions/get-artifact /v1/traces
/api/2.0/mlflow-artifacts/artifacts /api/2.0/mlflow-artifacts/artifacts/**
/ajax-api/2.0/mlflow-artifacts/artifacts /ajax-api/2.0/mlflow-artifacts/artifacts/**
""")
_BELOW = r"/(?:ajax-)?api/[23]\.0/mlflow/"

# Tags of a trace that name where its data is (mlflow 3.17.2, tracing/constant.py and utils/mlflow_tags.py).
# The server sets them. From a client they would make it read any file or object that it can.
LOCATIONS = ("mlflow.artifactLocation", "mlflow.trace.archiveLocation", "mlflow.trace.spansLocation")
_EXPERIMENT = re.compile(_BELOW + "experiments/create")
_SPANS = "/v1/traces"  # OpenTelemetry: JSON or protocol buffers
_TRACES = re.compile(f"(?:{_BELOW}traces(?:/.*)?|{_SPANS})")
# The largest body of a request that is read before MLflow gets it.
_MOST_BYTES = 64 * 2**20

# Address of documentation (RFC 5737), in place of the peer's: MLflow grants more to the loopback.
_NO_PEER = ("192.0.2.1", 0)
_FORWARDED = (b"forwarded", b"x-real-ip")

WITH_USERS, WITHOUT_USERS = "trainstack", "trainstack-open"  # names of applications, for MLflow

# A source of a model version outside of MLflow's own artifacts is read with the server's permissions.
# `dummy-source` is what MLflow's client stores for a prompt.
SOURCES = r"\A(?:(?:mlflow-artifacts|runs|models):/|dummy-source\Z)"


def _compiled(routes: Iterable[str], below: str = "") -> re.Pattern[str]:
    wild = {r"\*\*": ".+", r"\*": "[^/]+"}
    texts = (re.sub(r"\\\*\\\*|\\\*", lambda found: wild[found[0]], re.escape(route)) for route in routes)
    return re.compile(f"{below}(?:{'|'.join(texts)})", re.DOTALL)


_MEMBER_PATHS, _ADMINISTRATOR_PATHS = _compiled(MEMBERS, _BELOW), _compiled(ADMINISTRATOR, _BELOW)
_OTHER_PATHS = _compiled(OTHERS)


def access(path: str) -> str:
    """`member`, `administrator` or `refused`: the least user whose requests to `path` reach MLflow."""
    if _OTHER_PATHS.fullmatch(path) or _MEMBER_PATHS.fullmatch(path):
        return "member"
    return "administrator" if _ADMINISTRATOR_PATHS.fullmatch(path) else "refused"


class RefusedError(Exception):
    """Reason why a request does not reach MLflow."""


class Guard:
    """The application; `administrator` is the name of MLflow's first user, empty without users."""

    def __init__(self, app: Asgi, administrator: str) -> None:
        self._app, self._administrator = app, administrator

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse the request or pass it on without the address of its peer."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in _FORWARDED and not name.startswith(b"x-forwarded-")
        ]
        try:
            self._check(scope["method"], scope["path"], headers)
            receive = await _checked_body(scope["path"], headers, receive)
        except RefusedError as refused:
            return await _refuse(send, f"{scope['method']} {scope['path']}: {refused}")
        return await self._app({**scope, "headers": headers, "client": _NO_PEER}, receive, send)

    def _check(self, method: str, path: str, headers: Headers) -> None:
        needed = access(path)
        if needed == "refused":
            raise RefusedError("this stack serves experiments, runs, artifacts, models and traces only")
        # MLflow verifies the password, and that this user may do it.
        if needed == "administrator" and _username(headers) != self._administrator:
            raise RefusedError("users and permissions are managed by MLflow's administrator")
        if path.endswith("/ui-telemetry") and method != "GET":
            raise RefusedError("telemetry is off")


def _username(headers: Headers) -> str | None:
    """The user that the request claims to be from; None without one."""
    scheme, _, text = dict(headers).get(b"authorization", b"").partition(b" ")
    try:
        return base64.b64decode(text).partition(b":")[0].decode() if scheme.lower() == b"basic" else None
    except ValueError:
        return None


async def _checked_body(path: str, headers: Headers, receive: Receive) -> Receive:
    """`receive` of a request without a location that its client chose. Raises RefusedError otherwise."""
    created, traced = _EXPERIMENT.fullmatch(path), _TRACES.fullmatch(path)
    if not created and not traced:
        return receive
    if any(name == b"content-encoding" and value != b"identity" for name, value in headers):
        raise RefusedError("a compressed body is not supported here: send it without Content-Encoding")
    body = await _body(receive)
    pairs = _pairs(body, binary=path == _SPANS)
    if created and any(key in ("artifact_location", "artifactLocation") and value for key, value in pairs):
        raise RefusedError("artifacts are stored in the stack's bucket: leave out artifact_location")
    words = {word for pair in pairs for word in pair if isinstance(word, str)}
    for tag in LOCATIONS if traced else ():
        attribute = f"mlflow.traceTag.{tag}"  # of a span, which MLflow makes a tag of the trace
        if {tag, attribute} & words or (path == _SPANS and attribute.encode() in body):
            raise RefusedError(f"the server sets the tag {tag}: leave it out")

    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError("the client disconnected")
        body += message.get("body", b"")
        if len(body) > _MOST_BYTES:
            raise RefusedError(f"the body has more than {_MOST_BYTES} bytes: send less at a time")
        if not message.get("more_body", False):
            return bytes(body)


def _pairs(body: bytes, *, binary: bool) -> list[tuple[str, Any]]:
    """Keys and values of a JSON document, an item of a list each. Raises RefusedError for other documents.

    With `binary`, others have none.
    """
    found: list[tuple[str, Any]] = []

    def collected(items: list[tuple[str, Any]]) -> None:
        for key, value in items:
            found.extend((key, one) for one in (value if isinstance(value, list) else [value]))

    try:
        value = json.loads(body, object_pairs_hook=collected) if body else None
        if isinstance(value, str):  # MLflow decodes such a document once more
            json.loads(value, object_pairs_hook=collected)
    except (ValueError, RecursionError) as error:
        if not binary:
            raise RefusedError(f"the body is not JSON: {type(error).__name__}") from error
    return found


async def _refuse(send: Send, reason: str) -> None:
    body = json.dumps({"error_code": "PERMISSION_DENIED", "message": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def with_users() -> Guard:
    """The application with MLflow's own users."""
    auth: Any = importlib.import_module("mlflow.server.auth")
    return Guard(auth.create_app(), auth.auth_config.admin_username)


def without_users() -> Guard:
    """The application without users, behind a proxy that authenticates."""
    return Guard(importlib.import_module("mlflow.server.fastapi_app").app, "")


def plugin(folder: Path) -> None:
    """Write the metadata of a package that registers the two, for a PYTHONPATH with `folder`."""
    package = folder / "trainstack_guard-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: trainstack-guard\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        f"[mlflow.app]\n{WITH_USERS} = {__name__}:with_users\n{WITHOUT_USERS} = {__name__}:without_users\n"
    )
