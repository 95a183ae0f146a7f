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
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from tempfile import SpooledTemporaryFile
from typing import IO, ClassVar, cast

from agents.mlflow_server import guard
from agents.slurm.aws.mlflow_app import AppUpstream
from agents.slurm.upstream import Reply, Upstream

log = logging.getLogger("trainstack.mlflow")
HOST = "127.0.0.1"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
_JSON_BYTES = 16 << 20
_CHUNKED_BYTES = 1 << 30
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
    timeout = 120
    upstream: ClassVar[Upstream]
    health: ClassVar["UpstreamHealth"]

    def do_GET(self) -> None:
        """Answer a request."""
        self._answered()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """No line for each request: journals of nodes are for failures."""

    def _answered(self) -> None:
        path, _, query = self.path.partition("?")
        try:
            if path == "/health":
                reply = self.health.reply()
            elif why := refusal(self.command, path):
                self.close_connection = True  # the body is not read
                reply = failure(403, "PERMISSION_DENIED", why)
            elif path == ARTIFACTS or path.startswith(f"{ARTIFACTS}/"):
                reply = self._artifact(urllib.parse.unquote(path[len(ARTIFACTS) :]).strip("/"), query)
            else:
                content = self._content()
                reply = self.upstream.call(
                    self.command, self.path, content, self.headers.get("Content-Type") or ""
                )
        except (OSError, ValueError, KeyError) as error:
            log.warning("%s %s: %s: %s", self.command, path, type(error).__name__, error)
            self.close_connection = True
            reply = failure(503, "TEMPORARILY_UNAVAILABLE", f"{type(error).__name__}: {error}")
        self._send(reply)

    def _artifact(self, path: str, query: str) -> Reply:
        if self.command == "PUT":
            body, length = self._body()
            return self.upstream.put(path, body, length)
        if not path:
            (folder,) = urllib.parse.parse_qs(query).get("path") or [""]
            if any(part in ("..", ".") for part in folder.split("/")):
                return failure(400, "INVALID_PARAMETER_VALUE", "a path must not have `.` and `..`")
            return self.upstream.listed(folder)
        return self.upstream.get(path)

    def _content(self) -> bytes:
        if self.headers.get("Transfer-Encoding"):
            body, _ = self._body()
            return body.read()
        length = int(self.headers.get("Content-Length") or 0)
        if length > _JSON_BYTES:
            raise ValueError(f"the body has more than {_JSON_BYTES} bytes: send less at a time")
        return self.rfile.read(length)

    def _body(self) -> tuple[IO[bytes], int]:
        """The body and its length: as it comes, or collected where it comes in chunks."""
        if not self.headers.get("Transfer-Encoding"):
            length = int(self.headers.get("Content-Length") or 0)
            return cast("IO[bytes]", _Part(self.rfile, length)), length  # http.client reads it alone
        kept: IO[bytes] = SpooledTemporaryFile(_JSON_BYTES)  # noqa: SIM115 - sent later
        total = 0
        while size := int(self.rfile.readline(64).split(b";")[0], 16):
            total += size
            if total > _CHUNKED_BYTES:
                raise ValueError(f"a body in chunks has at most {_CHUNKED_BYTES} bytes")
            kept.write(self.rfile.read(size))
            self.rfile.readline(8)
        self.rfile.readline(8)
        kept.seek(0)
        return kept, total

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type or "application/json")
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


class _Part:
    """The first bytes of a stream as a file for http.client."""

    def __init__(self, stream: BufferedIOBase, length: int) -> None:
        self._stream, self._left = stream, length

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; empty at the end."""
        most = self._left if size < 0 else min(size, self._left)
        found = self._stream.read(most) if most else b""
        self._left -= len(found)
        return found


def failure(status: int, code: str, text: str) -> Reply:
    """A refusal in the form of MLflow's API."""
    body = json.dumps({"error_code": code, "message": text}).encode()
    return Reply(status, "application/json", iter([body]))


def serve(upstream: Upstream, port: int) -> None:
    """Serve until the process ends."""
    handler = type("Handler", (ProxyHandler,), {"upstream": upstream, "health": UpstreamHealth(upstream)})
    ThreadingHTTPServer((HOST, port), handler).serve_forever()


def main(_: list[str]) -> int:
    """Serve with the settings of the environment."""
    serve(AppUpstream(os.environ["MLFLOW_APP"], os.environ["ARTIFACTS"]), int(os.environ["PORT"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
