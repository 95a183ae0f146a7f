"""Requests that the MLflow server of a stack accepts; an ASGI application around MLflow's own.

MLflow serves much more than tracking: an assistant that runs commands for clients on the loopback, a gateway
and webhooks that send requests, jobs that run code of scorers. A port-forward ends on the pod's loopback, so
its peer is no proof of anything. Here each route is listed, and everything else is refused; the list is that
of mlflow 3.17.2 (`server/handlers.py`, `server/auth/routes.py`).

`with_users` and `without_users` are application factories for `mlflow server --app-name`, registered as
MLflow's documented plug-in `mlflow.app` (`plugin`). Standard library and MLflow only.
"""

import asyncio
import base64
import importlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from agents.mlflow_server.bodies import BELOW, Bodies, Headers, Message, Receive, RefusedError, has_body

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


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


_MEMBER_PATHS, _ADMINISTRATOR_PATHS = _compiled(MEMBERS, BELOW), _compiled(ADMINISTRATOR, BELOW)
_OTHER_PATHS = _compiled(OTHERS)


def access(path: str) -> str:
    """`member`, `administrator` or `refused`: the least user whose requests to `path` reach MLflow."""
    if _OTHER_PATHS.fullmatch(path) or _MEMBER_PATHS.fullmatch(path):
        return "member"
    return "administrator" if _ADMINISTRATOR_PATHS.fullmatch(path) else "refused"


class UnknownUserError(RefusedError):
    """A request with a body and without a login that MLflow knows."""

    status, code = 401, "UNAUTHENTICATED"


class Guard:
    """The application; `administrator` is the name of MLflow's first user, empty without users.

    `known` verifies a name and a password; None without users.
    """

    def __init__(self, app: Asgi, administrator: str, known: Callable[[str, str], Any] | None = None) -> None:
        self._app, self._administrator, self._known = app, administrator, known
        self._bodies = Bodies()

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
        with self._bodies.request((_login(headers) or ("", ""))[0]) as held:
            try:
                self._check(scope["method"], scope["path"], headers)
                await self._log_in(headers)
                headers, receive = await held.checked(scope["path"], headers, receive)
            except RefusedError as refused:
                return await _refuse(send, refused, f"{scope['method']} {scope['path']}: {refused}")
            return await self._app({**scope, "headers": headers, "client": _NO_PEER}, receive, send)

    async def _log_in(self, headers: Headers) -> None:
        """Verify the login before the body is read: anything in the cluster can send one."""
        if self._known and has_body(headers):
            login = _login(headers)
            if not login or not await asyncio.to_thread(self._known, *login):
                raise UnknownUserError(
                    "a name and a password of a user are needed (HTTP basic authentication)"
                )

    def _check(self, method: str, path: str, headers: Headers) -> None:
        needed = access(path)
        if needed == "refused":
            raise RefusedError("this stack serves experiments, runs, artifacts, models and traces only")
        # MLflow verifies the password, and that this user may do it.
        if needed == "administrator" and (_login(headers) or ("",))[0] != self._administrator:
            raise RefusedError("users and permissions are managed by MLflow's administrator")
        if path.endswith("/ui-telemetry") and method != "GET":
            raise RefusedError("telemetry is off")


def _login(headers: Headers) -> tuple[str, str] | None:
    """Name and password that the request has; None without."""
    scheme, _, text = dict(headers).get(b"authorization", b"").partition(b" ")
    try:
        name, _, password = base64.b64decode(text).decode().partition(":")
    except ValueError:
        return None
    return (name, password) if scheme.lower() == b"basic" else None


async def _refuse(send: Send, refused: RefusedError, reason: str) -> None:
    body = json.dumps({"error_code": refused.code, "message": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == UnknownUserError.status:
        headers.append((b"www-authenticate", b'Basic realm="mlflow"'))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def with_users() -> Guard:
    """The application with MLflow's own users."""
    auth: Any = importlib.import_module("mlflow.server.auth")
    app = auth.create_app()
    # MLflow's own check, whose results it keeps for a minute (mlflow 3.17.2, `server/auth/__init__.py`).
    return Guard(app, auth.auth_config.admin_username, auth._authenticate_cached)


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
