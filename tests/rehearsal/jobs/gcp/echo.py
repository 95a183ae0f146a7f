"""A server in place of MLflow that starts at once: it returns the request and its own environment."""

import json
import os
import socketserver
import sys
from http.server import BaseHTTPRequestHandler


class _Echo(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        """Handle any method, in the form of MLflow's response about an experiment."""
        size = int(self.headers.get("Content-Length") or 0)
        response = {
            "experiment": {"experiment_id": "7"},
            "path": self.path,
            "body": self.rfile.read(size).decode(),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "service": os.environ["K_SERVICE"],
            "word": os.environ.get("WORD"),
            "files": os.environ["ARTIFACTS_DESTINATION"],
            "database": os.environ["DATABASE_URI"],
        }
        content = json.dumps(response).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - as the base class has it


def main(_: list[str]) -> int:
    """Serve; end at once where the environment says so."""
    if os.environ.get("WORD") == "broken":
        sys.exit("no module named psycopg2")
    with socketserver.ThreadingUnixStreamServer(os.environ["UVICORN_UDS"], _Echo) as server:
        server.serve_forever()
    return 0
