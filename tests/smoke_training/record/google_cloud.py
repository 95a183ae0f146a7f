"""A server on this machine that stands for the metadata server and one API of Google Cloud."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = tuple[int, dict[str, Any]]
ACCOUNT = "job@research.iam.gserviceaccount.com"


@contextmanager
def serving(
    monkeypatch: pytest.MonkeyPatch, variable: str, api: Callable[[str, bytes], Answer]
) -> Iterator[None]:
    """Serve tokens, and `api` (path and body to status and answer) to requests with the token.

    `variable` names the one that leads to the API.
    """

    def answer(handler: BaseHTTPRequestHandler) -> Answer:
        if handler.path.startswith("/computeMetadata/v1/instance/service-accounts/default/token"):
            assert handler.headers["Metadata-Flavor"] == "Google", "it answers no other request"
            return 200, {"access_token": "t", "expires_in": 3599}
        if handler.path == "/computeMetadata/v1/instance/service-accounts/default/?recursive=true":
            return 200, {"aliases": ["default"], "email": ACCOUNT, "scopes": []}
        assert handler.headers["Authorization"] == "Bearer t"
        return api(handler.path, handler.rfile.read(int(handler.headers["Content-Length"])))

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            status, said = answer(self)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - names that the library asks for

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("GCE_METADATA_HOST", address)
        monkeypatch.setenv(variable, f"http://{address}/")
        yield
        server.shutdown()
