"""A proxy before an API server that counts requests and bytes, for programs that cannot be asked for them."""

import dataclasses
import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rehearsal.controlplane.api import Access
from rehearsal.controlplane.certificates import Authority

_TIMEOUT_S = 120.0


@dataclasses.dataclass
class Counted:
    """Requests of one program: method, path with query, and bytes of the response so far."""

    access: Access
    """Address of the proxy, and the authority of its certificate."""
    requests: list[list[object]] = dataclasses.field(default_factory=list)

    def size(self, part: str = "") -> int:
        """Bytes of all responses to paths with this part."""
        return sum(int(str(size)) for _, path, size in self.requests if part in str(path))

    def of(self, method: str, part: str) -> list[int]:
        """Bytes of each response to a method and a path with this part."""
        return [int(str(size)) for verb, path, size in self.requests if verb == method and part in str(path)]


@contextmanager
def counting(access: Access, folder: Path) -> Iterator[Counted]:
    """A proxy that passes everything on, with the credentials of the request."""
    authority = Authority(folder)
    pair = authority.sign("proxy")
    counted = Counted(dataclasses.replace(access, authority=authority.file))
    host, port = access.server.removeprefix("https://").split(":")
    upstream = ssl.create_default_context(cafile=str(access.authority))

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
            row: list[object] = [self.command, self.path, 0]
            counted.requests.append(row)
            link = http.client.HTTPSConnection(host, int(port), timeout=_TIMEOUT_S, context=upstream)
            headers = {key: value for key, value in self.headers.items() if key != "Host"}
            link.request(self.command, self.path, body, headers)
            answer = link.getresponse()
            self.send_response_only(answer.status)
            self.send_header("Date", answer.headers["Date"])
            self.send_header("Connection", "close")
            self.end_headers()
            # A watch is passed on as it comes.
            while chunk := answer.read1(65_536):
                row[2] = int(str(row[2])) + len(chunk)
                self.wfile.write(chunk)
            link.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815 - names of the base

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, http.client.HTTPException):
                # The program, or the API server, has ended.
                return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    counted.access = dataclasses.replace(
        counted.access, server=f"https://127.0.0.1:{server.server_address[1]}"
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield counted
    finally:
        server.shutdown()
        server.server_close()
