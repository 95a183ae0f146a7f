"""HTTP servers for the user who started them only; separate from `peers` because of import time."""

from http.server import ThreadingHTTPServer
from typing import Any

from infra.engine.peers import is_own


class OwnUserHttpServer(ThreadingHTTPServer):
    """An HTTP server that closes connections of other users without a response; one thread per connection."""

    daemon_threads = True

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether a connection comes from a process of this user."""
        return is_own(request.getsockname(), client_address)
