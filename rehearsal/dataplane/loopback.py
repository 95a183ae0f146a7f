"""HTTP servers on loopback for the user who started the rehearsal."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from infra.engine.http_peers import OwnUserHttpServer


class LoopbackHandler(BaseHTTPRequestHandler):
    """Serves one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Log nothing: requests and responses carry tokens and secrets."""


class LoopbackServer:
    """Serves in threads of this process from the start until `stop`; `facts` are attributes of its handlers.

    Raises OSError when the port is taken.
    """

    def __init__(
        self,
        handler: type[LoopbackHandler],
        address: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        **facts: Any,
    ) -> None:
        self._server = OwnUserHttpServer((address, port), type(handler.__name__, (handler,), facts))
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        self.host = f"{address}:{self.port}"
        threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name=f"http {self.host}", daemon=True
        ).start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
