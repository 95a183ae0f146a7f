"""HTTP servers for the user who started them only; apart from `peers`, because they are slow to import."""

from http.server import ThreadingHTTPServer
from typing import Any

from infra.engine.peers import is_own


class OwnUserHttpServer(ThreadingHTTPServer):
    """An HTTP server that closes connections of other users without an answer; one thread a connection."""

    daemon_threads = True

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a connection comes from a process of this user."""
        return is_own(request.getsockname(), client_address)
