"""Metadata server, Secret Manager, IAM credentials and Cloud SQL as tracking pods ask them, over HTTP."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

POD_TOKEN = "token-of-the-pod"


@dataclass
class Google:
    """What the APIs know; `refusals` are statuses that they answer first, one per request."""

    address: str = ""
    secrets: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """Versions by secret, oldest first: `data` as Secret Manager takes it, and `state`."""
    refusals: list[int] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path and body of each request."""
    logins: int = 0
    """Tokens for databases that were handed out."""
    expires_in: int = 3599
    backups: list[dict[str, Any]] = field(default_factory=list)
    """Backups of Cloud SQL, the last first."""
    progress: list[str | int] = field(default_factory=list)
    """Answers of lists of backups: the state of the last backup, or a status with which the request fails."""
    lost: list[int] = field(default_factory=list)
    """Statuses of requests for a backup that is made nevertheless."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead a program here."""
        return {
            "GCE_METADATA_HOST": self.address,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"http://{self.address}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS": f"http://{self.address}/",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"http://{self.address}/",
        }

    def add(self, secret: str, fields: dict[str, str], state: str = "ENABLED") -> None:
        """Add a version."""
        data = base64.b64encode(json.dumps(fields).encode()).decode()
        self.secrets.setdefault(secret, []).append({"data": data, "state": state})

    def values(self, secret: str) -> list[dict[str, str]]:
        """The values of all versions, oldest first."""
        return [json.loads(base64.b64decode(row["data"])) for row in self.secrets[secret]]

    def answer(self, method: str, path: str, token: str, flavor: str, body: Any) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        self.asked.append((method, path, body))
        if path.startswith("/computeMetadata/"):
            if flavor != "Google":
                return 403, {"error": "Metadata-Flavor"}
            return 200, {"access_token": POD_TOKEN, "expires_in": self.expires_in, "token_type": "Bearer"}
        if self.refusals:
            return self.refusals.pop(0), {"error": {"message": "not yet"}}
        if token != f"Bearer {POD_TOKEN}":
            return 401, {"error": {"message": "no token"}}
        if "/backupRuns" in path:
            return self._backup(body) if method == "POST" else self._backups()
        what, _, verb = path.removeprefix("/v1/").rpartition(":")
        return self._of_api(what, verb, body)

    def _backup(self, body: Any) -> tuple[int, Any]:
        self.backups.insert(0, {"id": str(77 + len(self.backups)), "status": "ENQUEUED", **body})
        return (self.lost.pop(0) if self.lost else 200), {"name": "op-1", "status": "PENDING"}

    def _backups(self) -> tuple[int, Any]:
        if not self.backups:
            return 200, {}  # as the API: an empty list is left out
        state = self.progress.pop(0)
        if isinstance(state, int):
            return state, {"error": {"message": "unavailable"}}
        self.backups[0]["status"] = state
        return 200, {"items": self.backups}

    def _of_api(self, what: str, verb: str, body: Any) -> tuple[int, Any]:
        if verb == "generateAccessToken":
            assert body["scope"] == ["https://www.googleapis.com/auth/sqlservice.login"], "no more than that"
            self.logins += 1
            return 200, {"accessToken": f"login-{self.logins}", "expireTime": "2026-11-25T12:00:00Z"}
        if verb == "addVersion":
            versions = self.secrets[what]
            versions.append({"data": body["payload"]["data"], "state": "ENABLED"})
            return 200, {"name": f"{what}/versions/{len(versions)}", "state": "ENABLED"}
        secret, _, number = what.rpartition("/versions/")
        versions = self.secrets.get(secret, [])
        wanted = len(versions) if number == "latest" else int(number)
        if not 0 < wanted <= len(versions):
            return 404, {"error": {"message": f"Secret Version [{what}] not found."}}
        found = versions[wanted - 1]
        if found["state"] != "ENABLED":
            return 400, {"error": {"status": "FAILED_PRECONDITION", "message": "it is disabled"}}
        return 200, {"name": f"{secret}/versions/{wanted}", "payload": {"data": found["data"]}}


@contextmanager
def google() -> Iterator[Google]:
    """The APIs on a port of this machine."""
    cloud = Google()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token, flavor = (self.headers.get(name, "") for name in ("Authorization", "Metadata-Flavor"))
            status, said = cloud.answer(self.command, self.path, token, flavor, body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - names that the library asks for

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the test reads `asked`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        cloud.address = f"127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield cloud
        finally:
            server.shutdown()
            serving.join()
