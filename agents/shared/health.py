"""HTTP server of a long-running program: /healthz and /metrics; standard library only."""

import os
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "LISTEN_ADDRESS"
"""Variable with the address to listen on; default: all. A rehearsal has one network of all pods, and replaces
a value of `0.0.0.0` by the pod's own address, so that no two programs use one port."""
# The text format of Prometheus (prometheus/docs, instrumenting/exposition_formats).
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    """Serves /healthz and /metrics; unhealthy when the program calls no `beat` for `patience_s`."""

    def __init__(self, port: int, metrics: Callable[[], str], patience_s: float) -> None:
        self._metrics, self._patience_s = metrics, patience_s
        self._seen = time.monotonic()
        health = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = health.answer(self.path.partition("?")[0])
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", _TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log no request: a probe arrives every few seconds."""

        # The pod's network policy restricts access; the kubelet probes the pod's address.
        self._server = ThreadingHTTPServer((os.environ.get(ADDRESS, ""), port), Handler)
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    def beat(self) -> None:
        """Note that the program is alive."""
        self._seen = time.monotonic()

    def answer(self, path: str) -> tuple[int, str]:
        """The status and the text for a path."""
        if path == "/metrics":
            return 200, self._metrics()
        if path != "/healthz":
            return 404, "not found\n"
        silent_s = time.monotonic() - self._seen
        return (200, "ok\n") if silent_s <= self._patience_s else (503, f"silent for {silent_s:.0f} s\n")

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
