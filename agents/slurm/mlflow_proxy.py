"""MLflow for jobs of a node: a server on the loopback that sends requests with the identity of the machine.

Jobs have no credentials of the cloud, need no plug-in of MLflow, and cannot delete or rename what is
recorded: such requests are refused, as are routes that tracking does not need (`agents.mlflow_server.guard`).
The service behind it knows one identity for all jobs, so any job can read all runs, and write into those of
other teams.

Settings come from the environment: PORT, MLFLOW_APP (its ARN) and ARTIFACTS (`s3://bucket/folder`).
"""

import json
import logging
import os
import socket
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from agents.mlflow_server import guard
from agents.mlflow_server.bodies import RefusedError
from agents.slurm import request_body
from agents.slurm.aws.mlflow_app import AppUpstream
from agents.slurm.upstream import Reply, Upstream

log = logging.getLogger("trainstack.mlflow")
HOST = "127.0.0.1"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
REQUESTS = 24
"""Requests at once; others wait. Each holds at most two bodies of 12 MiB."""
_IDLE_S, _LINGER_S = 60, 10.0
_FRESH_S = 30.0
_KEPT = frozenset({"delete", "delete-tag", "delete-experiment-tag", "delete-traces", "rename", "restore"})
"""Last words of routes that change what others recorded."""
_RENAMES = ("experiments/update", "registered-models/update", "model-versions/transition-stage")


def refusal(method: str, path: str) -> str | None:
    """The reason why a request of a job is refused; None for one that may pass."""
    plain = urllib.parse.unquote(path)
    # GraphQL and MLflow's pages are for people, who have logins of their own.
    if guard.access(plain) != "member" or plain == "/graphql" or "\\" in plain:
        return "jobs reach experiments, runs, artifacts, models and traces only"
    if any(part in ("..", ".") for part in plain.split("/")):
        return "a path must not have `.` and `..`"
    last = plain.rstrip("/").rpartition("/")[2]
    if method == "DELETE" or last in _KEPT or plain.endswith(_RENAMES):
        return "jobs do not delete or rename; an administrator does, with a login of the cloud"
    return None


class ProxyHandler(BaseHTTPRequestHandler):
    """One request of a job."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    upstream: ClassVar[Upstream]
    health: ClassVar["UpstreamHealth"]

    def do_GET(self) -> None:
        """Answer a request."""
        self._answered()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """No line for each request: journals of nodes are for failures."""

    def _answered(self) -> None:
        # A connection that waits for its next request would hold a place.
        self.close_connection = True
        path, _, query = self.path.partition("?")
        try:
            reply, refused = self._reply(path, query), False
        except RefusedError as error:
            reply, refused = failure(error.status, error.code, str(error)), True
        except (OSError, ValueError, KeyError) as error:
            log.warning("%s %s: %s: %s", self.command, path, type(error).__name__, error)
            reply = failure(503, "TEMPORARILY_UNAVAILABLE", f"{type(error).__name__}: {error}")
            refused = True
        self._send(reply)
        if refused or self.command == "PUT":
            self._linger()

    def _reply(self, path: str, query: str) -> Reply:
        if path == "/health":
            return self.health.reply()
        if why := refusal(self.command, path):
            raise RefusedError(why)
        plain = urllib.parse.unquote(path)
        if plain == ARTIFACTS or plain.startswith(f"{ARTIFACTS}/"):
            return self._artifact(plain[len(ARTIFACTS) :].strip("/"), query)
        content = request_body.content(plain, self.headers, self.rfile)
        return self.upstream.call(self.command, self.path, content, self.headers.get("Content-Type") or "")

    def _artifact(self, path: str, query: str) -> Reply:
        if self.command == "PUT":
            body, length = request_body.artifact(self.headers, self.rfile)
            return self.upstream.put(path, body, length)
        if not path:
            (folder,) = urllib.parse.parse_qs(query).get("path") or [""]
            if any(part in ("..", ".") for part in folder.split("/")):
                return failure(400, "INVALID_PARAMETER_VALUE", "a path must not have `.` and `..`")
            return self.upstream.listed(folder)
        return self.upstream.get(path)

    def _linger(self) -> None:
        """Read and forget what the client still sends for a while: it reads the reason only after that."""
        end = time.monotonic() + _LINGER_S
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            while time.monotonic() < end and self.rfile.read1(1 << 20):
                pass
        except OSError:
            return

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type or "application/json")
        self.send_header("Connection", "close")
        body = reply.body
        if "Content-Length" not in reply.headers:
            whole = b"".join(body)
            self.send_header("Content-Length", str(len(whole)))
            body = iter([whole])
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in body:
            self.wfile.write(piece)


class UpstreamHealth:
    """State of the service behind, asked for at most every half minute."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream, self._lock = upstream, threading.Lock()
        self._asked, self._reply = 0.0, (503, "not asked yet")

    def reply(self) -> Reply:
        """200 or 503."""
        with self._lock:
            if not self._asked or time.monotonic() - self._asked > _FRESH_S:
                self._reply = self._ask()
                self._asked = time.monotonic()
            status, text = self._reply
        return Reply(status, "text/plain", iter([text.encode()]))

    def _ask(self) -> tuple[int, str]:
        try:
            found = self._upstream.call("GET", "/api/2.0/mlflow/experiments/get?experiment_id=0", b"", "")
        except (OSError, ValueError, KeyError) as error:
            return 503, f"{type(error).__name__}: {error}"
        # An app without the default experiment answers 404.
        return (200, "OK") if found.status in (200, 404) else (503, f"status {found.status}")


def failure(status: int, code: str, text: str) -> Reply:
    """A refusal in the form of MLflow's API."""
    body = json.dumps({"error_code": code, "message": text}).encode()
    return Reply(status, "application/json", iter([body]))


class ProxyServer(ThreadingHTTPServer):
    """A server with a limit of requests at once."""

    request_queue_size = 128

    def __init__(self, upstream: Upstream, port: int) -> None:
        """Raises OSError where the port is taken."""
        known = {"upstream": upstream, "health": UpstreamHealth(upstream)}
        self._places = threading.BoundedSemaphore(REQUESTS)
        super().__init__((HOST, port), type("Handler", (ProxyHandler,), known))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread once there is a place."""
        self._places.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


def main(_: list[str]) -> int:
    """Serve with the settings of the environment."""
    upstream = AppUpstream(os.environ["MLFLOW_APP"], os.environ["ARTIFACTS"])
    ProxyServer(upstream, int(os.environ["PORT"])).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
