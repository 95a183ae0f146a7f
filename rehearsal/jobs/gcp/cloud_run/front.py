"""Google's front end of a service: checks the proxy's decision, waits for an instance, forwards requests."""

import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer
from rehearsal.jobs.gcp.cloud_run.iap import IapDeniedError

# Source: Cloud Run documentation, "Quotas and limits" (HTTP/1 requests).
MOST_BYTES = 32 << 20
_OWN = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_ITS = {*_OWN, "authorization", "proxy-authorization"}


@dataclass(frozen=True)
class Backend:
    """`judge` raises IapDeniedError; `connect` starts an instance where none runs."""

    judge: Callable[[str, Mapping[str, str]], None]
    connect: Callable[[], http.client.HTTPConnection]


class Front(LoopbackServer):
    """Serves at an address of its own until `stop`."""

    def __init__(self, address: str, port: int, behind: Backend) -> None:
        super().__init__(_Handler, address, port, service=behind)
        self.url = f"http://{self.host}"


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    service: Backend

    def do_GET(self) -> None:
        """Forward a request of any method."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self._pass_on(headers)
        except IapDeniedError as refused:
            self.close_connection = True  # the rest of the body is not a request
            self._reply(refused.status, refused.headers, refused.text.encode())

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - as the base class has it

    def _pass_on(self, headers: Mapping[str, str]) -> None:
        """Forward a request. Raises IapDeniedError for a request that must not reach the service."""
        self.service.judge(f"http://{headers.get('host')}{self.path}", headers)
        size = int(headers.get("content-length") or 0)
        if size > MOST_BYTES:
            raise IapDeniedError(413, "Request Entity Too Large", {"Content-Type": "text/html"})
        content = self.rfile.read(size)
        connection = self.service.connect()
        try:
            passed = {name: value for name, value in headers.items() if name not in _ITS}
            connection.request(self.command, self.path, content or None, passed)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            raise IapDeniedError(503, "Service Unavailable", {"Content-Type": "text/plain"}) from None
        finally:
            connection.close()
        self._reply(answer.status, dict(answer.getheaders()), body)

    def _reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _OWN:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
