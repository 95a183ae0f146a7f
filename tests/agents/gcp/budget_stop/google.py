"""Vertex AI, Notebooks and Cloud Storage as far as the function that stops jobs asks them, over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PROJECT, REGION = "research", "us-central1"
PLACE = f"projects/{PROJECT}/locations/{REGION}"
TOKEN = "token-of-the-function"


@dataclass
class Google:
    """What runs, by resource name; `refusals` are answers to a POST by the end of its path."""

    address: str = ""
    token: str = TOKEN
    jobs: list[dict[str, Any]] = field(default_factory=list)
    notebooks: list[dict[str, Any]] = field(default_factory=list)
    endpoints: list[dict[str, Any]] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    posted: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead the function here."""
        apis = ("AIPLATFORM", "NOTEBOOKS", "STORAGE")
        overrides = {
            f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": f"http://{self.address}/{api}/" for api in apis
        }
        return {"GCE_METADATA_HOST": self.address, **overrides}

    def job(self, name: str, state: str = "JOB_STATE_RUNNING", **labels: str) -> None:
        """A custom job; labels without their prefix."""
        row = {"name": f"{PLACE}/customJobs/{name}", "displayName": name, "state": state}
        self.jobs.append({**row, "labels": _labels(labels)})

    def notebook(self, name: str, state: str = "ACTIVE", **labels: str) -> None:
        """An instance of Workbench."""
        row = {"name": f"projects/{PROJECT}/locations/us-central1-a/instances/{name}", "state": state}
        self.notebooks.append({**row, "labels": _labels(labels)})

    def endpoint(self, name: str, models: list[str], **labels: str) -> None:
        """An endpoint with models."""
        row = {"name": f"{PLACE}/endpoints/{name}", "displayName": name}
        deployed = [{"id": model} for model in models]
        self.endpoints.append({**row, "deployedModels": deployed, "labels": _labels(labels)})

    def get(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Lists come one item a page."""
        if path.startswith("/computeMetadata/"):
            return 200, {"access_token": self.token, "expires_in": 3599}
        kind, rows = {
            "customJobs": (
                "customJobs",
                [one for one in self.jobs if one["state"] in query.get("filter", "")],
            ),
            "instances": ("instances", self.notebooks),
            "endpoints": ("endpoints", self.endpoints),
        }[path.rpartition("/")[2]]
        at = int(query.get("pageToken", 0))
        more = {"nextPageToken": str(at + 1)} if at + 1 < len(rows) else {}
        return 200, {kind: rows[at : at + 1], **more}

    def post(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        """An object that is there is not written again, as the request demands."""
        if path.startswith("/STORAGE/"):
            assert query["ifGenerationMatch"] == "0"
            if query["name"] in self.objects:
                return 412, {"error": {"status": "FAILED_PRECONDITION"}}
            self.objects[query["name"]] = json.loads(body)
            return 200, {"name": query["name"]}
        for end, (status, said) in self.refusals.items():
            if path.endswith(end):
                return status, {"error": {"status": said}}
        self.posted.append((path.partition("projects/")[2], json.loads(body)))
        return 200, {}


def _labels(labels: dict[str, str]) -> dict[str, str]:
    return {f"trainstack-{key.replace('_', '-')}": value for key, value in labels.items()}


@contextmanager
def running() -> Iterator[Google]:
    """The APIs at an address of their own."""
    google = Google()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def _answer(self, verb: str) -> None:
            parts = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            metadata = parts.path.startswith("/computeMetadata/")
            allowed = self.headers.get("Metadata-Flavor") if metadata else self.headers.get("Authorization")
            if allowed != ("Google" if metadata else f"Bearer {google.token}"):
                status, said = 401, {"error": {"status": "UNAUTHENTICATED"}}
            elif verb == "GET":
                status, said = google.get(parts.path, query)
            else:
                status, said = google.post(parts.path, query, body)
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    google.address = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield google
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
