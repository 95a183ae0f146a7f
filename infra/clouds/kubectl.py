"""Requests to the API server of a cluster, by the login of kubectl, whichever that is."""

import json
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from infra.errors import Problem, UserError

_WAITS = urllib3.Retry(
    total=6,
    connect=0, status_forcelist=(429, 502, 503, 504), allowed_methods=("GET",), backoff_factor=0.5,
    backoff_max=20, raise_on_status=False,
)  # fmt: skip
"""Of each request, before being throttled counts as no answer: about a minute of waits in all."""
_SECONDS = urllib3.Timeout(connect=5, read=60)
_WRITES = "^(POST|PUT|PATCH|DELETE)$"
_LOG_IN = "Log in as for kubectl, and look at `kubectl config get-contexts`, the network, and KUBECONFIG."


class _Connection(HTTPConnection):
    """Through a socket in a folder that only its owner reads: whoever reaches it is logged in."""

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
    """What an API server said to a request."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    """Its object; of a refusal, its `Status`."""

    @property
    def code(self) -> str:
        """Why it refused, in one word such as Forbidden."""
        return str(self.body.get("reason") or f"HTTP{self.status}")

    @property
    def message(self) -> str:
        """Why it refused."""
        return str(self.body.get("message") or "")


class ClusterApi:
    """The API server of a context of a kubeconfig."""

    def __init__(self, server: str, pool: urllib3.HTTPConnectionPool) -> None:
        self.server = server
        self._pool = pool

    def get(self, path: str, accept: str = "application/json", **query: str) -> ApiResponse:
        """The answer to a request. Raises UserError where the cluster accepts no login."""
        try:
            said = self._pool.request(
                "GET", path, fields=query, headers={"Accept": accept}, retries=_WAITS, timeout=_SECONDS
            )
        except HTTPError as error:
            return ApiResponse(0, {"reason": type(error).__name__, "message": str(error)})
        try:
            body = json.loads(said.data)
        except ValueError:  # what kubectl itself says is plain text
            return ApiResponse(
                0, {"reason": "NoAnswer", "message": said.data.decode(errors="replace").strip()}
            )
        if said.status == 401:
            rule = f"the cluster {self.server} accepts none: {body.get('message')}"
            raise UserError([Problem("credentials", None, rule, _LOG_IN, code="cluster-login-refused")])
        return ApiResponse(said.status, body)


@contextmanager
def connected(context: str | None, kubeconfig: Path | None = None) -> Iterator[ClusterApi]:
    """The cluster of a context of a kubeconfig, else of the shell's; of its current one, if none is given.

    Raises UserError where there is none, or kubectl is not installed.
    """
    which = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    which += [f"--context={context}"] if context else []
    server = _server(context, which)
    with tempfile.TemporaryDirectory(prefix="trainstack-") as folder:
        file = Path(folder, "s")
        options = [*which, f"--unix-socket={file}", f"--reject-methods={_WRITES}"]
        with _proxy(context, options), _Pool("localhost", file=str(file)) as pool:
            yield ClusterApi(server, pool)


@contextmanager
def _proxy(context: str | None, options: list[str]) -> Iterator[None]:
    """kubectl, for as long as the context lasts. Raises UserError where it does not start."""
    command = ["kubectl", "proxy", *options]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout
        try:
            if not process.stdout.readline():  # it says that it serves, or ends
                log.seek(0)
                raise _unusable(context, log.read())
            yield
        finally:
            process.terminate()


def _server(context: str | None, which: list[str]) -> str:
    """The address of the cluster. kubectl leaves secrets out of what it shows."""
    command = ["kubectl", "config", "view", "--minify", "--output=json", *which]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        fix = "Install it: kubernetes.io/docs/tasks/tools"
        raise UserError(
            [Problem("kubectl", None, "is not installed", fix, code="kubectl-not-installed")]
        ) from None
    if done.returncode:
        raise _unusable(context, done.stderr)
    clusters = json.loads(done.stdout).get("clusters") or [{}]
    return str(clusters[0].get("cluster", {}).get("server") or "")


def _unusable(context: str | None, said: str) -> UserError:
    rule = f"the kubeconfig names no cluster: {said.strip().removeprefix('error: ')}"
    return UserError([Problem("--context", context, rule, _LOG_IN, code="kubeconfig-without-cluster")])


def unanswered(cluster: ClusterApi, answer: ApiResponse) -> UserError:
    """The error about a cluster of which not even the kinds of objects can be asked."""
    rule = f"does not tell what it serves: {answer.code}: {answer.message}"
    return UserError([Problem("cluster", cluster.server, rule, _LOG_IN, code="cluster-kinds-not-readable")])
