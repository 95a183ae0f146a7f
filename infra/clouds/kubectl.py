"""Requests to the API server of a cluster with the credentials of kubectl."""

import datetime
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, ReadTimeoutError

from infra.errors import Problem, UserError

_LONGEST_S = 60.0
"""Seconds after which a request is not repeated any more. A server that does not answer at all, as through a
closed VPN, ends the first one: kubectl's proxy waits half a minute for a connection, then says 502."""
_SECONDS = urllib3.Timeout(connect=5, read=60)
_WRITES = "^(POST|PUT|PATCH|DELETE)$"
_LOG_IN = "Log in as for kubectl; check `kubectl config get-contexts`, the network, and KUBECONFIG."


class _Waits(urllib3.Retry):
    """Retries of a throttled request, within `_LONGEST_S` of its start; one for each request."""

    def __init__(self, *given: Any, ends: float | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ends = time.monotonic() + _LONGEST_S if ends is None else ends

    def new(self, **named: Any) -> "_Waits":
        """See `urllib3.Retry`: the state after a try."""
        return super().new(**named, ends=self._ends)

    def is_retry(self, *given: Any, **named: Any) -> bool:
        """See `urllib3.Retry`: whether a response is one."""
        return time.monotonic() < self._ends and super().is_retry(*given, **named)

    def increment(
        self, method: str | None = None, url: str | None = None, response: Any = None,
        error: Exception | None = None, *given: Any, **named: Any,
    ) -> "_Waits":  # fmt: skip
        """See `urllib3.Retry`: after a response or an error."""
        if isinstance(error, ReadTimeoutError) or (error and time.monotonic() >= self._ends):
            raise error
        return super().increment(method, url, response, error, *given, **named)


def _waits() -> _Waits:
    return _Waits(
        total=6,
        connect=0, status_forcelist=(429, 502, 503, 504), allowed_methods=("GET",), backoff_factor=0.5,
        backoff_max=20, raise_on_status=False,
    )  # fmt: skip


class _Connection(HTTPConnection):
    """A Unix socket in a folder that only its owner can read: a connection to it is authenticated."""

    def __init__(self, *given: Any, file: str, **named: Any) -> None:
        super().__init__(*given, **named)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_SECONDS.connect_timeout)  # type: ignore[arg-type]
        self.sock.connect(self._file)


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


@dataclass(frozen=True)
class ApiResponse:
    """Response of an API server."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    """The object; for an error, its `Status`."""
    date: datetime.datetime | None = None
    """Time of the response by the server's clock; None without a response."""

    @property
    def code(self) -> str:
        """Reason of an error, such as Forbidden."""
        return str(self.body.get("reason") or f"HTTP{self.status}")

    @property
    def message(self) -> str:
        """Message of an error."""
        return str(self.body.get("message") or "")


class ClusterApi:
    """The API server of a context of a kubeconfig."""

    def __init__(
        self, server: str, pool: urllib3.HTTPConnectionPool, *, context: str = "", namespace: str = ""
    ) -> None:
        self.server = server
        self.context = context
        self.namespace = namespace
        """The one that the context names; empty: none."""
        self._pool = pool

    def get(self, path: str, accept: str = "application/json", **query: str) -> ApiResponse:
        """The response to a request. Raises UserError where the cluster rejects the login."""
        return self._ask("GET", path, fields=query, headers={"Accept": accept}, retries=_waits())

    def text(self, path: str, **query: str) -> "str | ApiResponse":
        """The plain text at a path, such as a log; the response where there is none.

        Raises UserError where the cluster rejects the login.
        """
        try:
            response = self._pool.request("GET", path, timeout=_SECONDS, fields=query, retries=_waits())
        except HTTPError as error:
            return ApiResponse(0, {"reason": type(error).__name__, "message": str(error)})
        return response.data.decode(errors="replace") if response.status == 200 else self._read(response)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> ApiResponse:
        """The response to a PATCH (a merge patch) or a DELETE (its options), which is sent once.

        Raises UserError where the cluster rejects the login.
        """
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Accept": "application/json", "Content-Type": content}
        return self._ask(method, path, body=json.dumps(body), headers=headers, retries=False)

    def _ask(self, method: str, path: str, **options: Any) -> ApiResponse:
        try:
            response = self._pool.request(method, path, timeout=_SECONDS, **options)
        except HTTPError as error:
            return ApiResponse(0, {"reason": type(error).__name__, "message": str(error)})
        return self._read(response)

    def _read(self, response: urllib3.BaseHTTPResponse) -> ApiResponse:
        try:
            body = json.loads(response.data)
        except ValueError:  # messages of kubectl itself are plain text
            return ApiResponse(
                0, {"reason": "NoAnswer", "message": response.data.decode(errors="replace").strip()}
            )
        if response.status == 401:
            rule = f"the cluster {self.server} rejects the login: {body.get('message')}"
            raise UserError([Problem("credentials", None, rule, _LOG_IN, code="cluster-login-refused")])
        date = response.headers.get("Date")
        return ApiResponse(response.status, body, parsedate_to_datetime(date) if date else None)


@contextmanager
def connected(
    context: str | None, kubeconfig: Path | None = None, *, writing: bool = False
) -> Iterator[ClusterApi]:
    """Connect to the cluster of a context, by default the current one, of a kubeconfig or the default one.

    Requests other than GET are rejected, unless `writing`. Raises UserError where there is none, or kubectl
    is not installed.
    """
    which = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    which += [f"--context={context}"] if context else []
    named = _chosen(context, kubeconfig, which)
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        file = Path(folder, "s")
        options = [*which, f"--unix-socket={file}"]
        # kubectl's own default rejects the paths of exec and attach, which no request here needs.
        options += [] if writing else [f"--reject-methods={_WRITES}"]
        with _proxy(context, kubeconfig, options), _Pool("localhost", file=str(file)) as pool:
            yield ClusterApi(named["server"], pool, context=named["context"], namespace=named["namespace"])


@contextmanager
def _proxy(context: str | None, kubeconfig: Path | None, options: list[str]) -> Iterator[None]:
    """Run `kubectl proxy` during the context. Raises UserError where it does not start."""
    command = ["kubectl", "proxy", *options]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout
        try:
            if not process.stdout.readline():  # it prints its address, or ends
                log.seek(0)
                raise _unusable(context, kubeconfig, log.read())
            yield
        finally:
            process.terminate()


def _chosen(context: str | None, kubeconfig: Path | None, which: list[str]) -> Mapping[str, str]:
    """Server, name and namespace of the context. kubectl omits secrets from this output."""
    command = ["kubectl", "config", "view", "--minify", "--output=json", *which]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        fix = "Install it: kubernetes.io/docs/tasks/tools"
        rule = "is not installed"
        raise UserError([Problem("kubectl", None, rule, fix, code="kubectl-not-installed")]) from None
    if done.returncode:
        raise _unusable(context, kubeconfig, done.stderr)
    found = json.loads(done.stdout)
    cluster = (found.get("clusters") or [{}])[0].get("cluster") or {}
    chosen = (found.get("contexts") or [{}])[0]
    return {
        "server": str(cluster.get("server") or ""),
        "context": str(chosen.get("name") or ""),
        "namespace": str((chosen.get("context") or {}).get("namespace") or ""),
    }


def _unusable(context: str | None, kubeconfig: Path | None, message: str) -> UserError:
    why = message.strip().removeprefix("error: ")
    if "current-context must exist" in why:
        why = "there is none, or it has no current context"
    rule = f"the kubeconfig names no cluster: {why}"
    path, value = ("--kubeconfig", str(kubeconfig)) if kubeconfig and not context else ("--context", context)
    return UserError([Problem(path, value, rule, _LOG_IN, code="kubeconfig-without-cluster")])


def unanswered(cluster: ClusterApi, answer: ApiResponse) -> UserError:
    """The error for a cluster that does not list its kinds of objects."""
    rule = f"does not list its kinds of objects: {answer.code}: {answer.message}"
    return UserError([Problem("cluster", cluster.server, rule, _LOG_IN, code="cluster-kinds-not-readable")])
