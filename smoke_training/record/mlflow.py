"""A small client of MLflow's REST API (`/api/2.0/mlflow/...`, MLflow 3.17), standard library only.

The training image does not ship the mlflow package, and one run with a few hundred figures does not need
it.
"""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

METRICS_PER_REQUEST = 850  # log-batch takes at most 1000 entries in all, of them at most 100 params
REQUEST_TIMEOUT_S = 30.0


class TrackingError(RuntimeError):
    """The tracking server could not be reached or refused; the text names the request."""


@dataclass(frozen=True)
class Metric:
    """One metric point; timestamp in milliseconds since the epoch."""

    key: str
    value: float
    step: int
    timestamp: int


class Tracking:
    """One tracking server. `deadline` (monotonic seconds) bounds all requests together."""

    def __init__(self, uri: str, credentials: tuple[str, str] | None, deadline: float) -> None:
        scheme = urllib.parse.urlsplit(uri).scheme
        if scheme not in ("http", "https"):
            raise TrackingError(f"MLFLOW_TRACKING_URI: got {uri!r}; must be an http or https address")
        self._uri, self._deadline = uri.rstrip("/"), deadline
        self._headers = {"Content-Type": "application/json"}
        if credentials is not None:
            token = base64.b64encode(":".join(credentials).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def experiment(self, name: str) -> str:
        """Id of the experiment, created if it does not exist (another run may create it meanwhile)."""
        query = urllib.parse.urlencode({"experiment_name": name})
        path = f"mlflow/experiments/get-by-name?{query}"
        try:
            return str(self._json("GET", path)["experiment"]["experiment_id"])
        except _RefusedError as error:
            if error.status != 404:
                raise
        try:
            return str(self._json("POST", "mlflow/experiments/create", {"name": name})["experiment_id"])
        except _RefusedError:
            return str(self._json("GET", path)["experiment"]["experiment_id"])

    def create_run(
        self, experiment: str, name: str, started_ms: int, tags: dict[str, str]
    ) -> tuple[str, str]:
        """Start a run that carries its tags from the first moment; returns (run id, artifact URI)."""
        body = {
            "experiment_id": experiment,
            "run_name": name,
            "start_time": started_ms,
            "tags": _pairs(tags),
        }
        info = self._json("POST", "mlflow/runs/create", body)["run"]["info"]
        return str(info["run_id"]), str(info["artifact_uri"])

    def log(self, run: str, metrics: Sequence[Metric], params: dict[str, str]) -> None:
        """Log params and metrics in as few requests as the limits allow; every request costs a login."""
        body: dict[str, Any] = {"run_id": run, "params": _pairs(params)}
        for first in range(0, max(len(metrics), 1), METRICS_PER_REQUEST):
            body["metrics"] = [vars(metric) for metric in metrics[first : first + METRICS_PER_REQUEST]]
            self._json("POST", "mlflow/runs/log-batch", body)
            body = {"run_id": run}

    def upload(self, artifact_uri: str, name: str, content: bytes) -> None:
        """Store one artifact through the server's proxy; stores that need a client are refused."""
        prefix = "mlflow-artifacts:"
        if not artifact_uri.startswith(prefix):
            raise TrackingError(f"artifacts live at {artifact_uri}, which the server does not proxy")
        folder = urllib.parse.urlsplit(artifact_uri).path.strip("/")
        self._send("PUT", f"mlflow-artifacts/artifacts/{urllib.parse.quote(f'{folder}/{name}')}", content)

    def finish(self, run: str, status: str, ended_ms: int) -> None:
        """End the run as FINISHED, FAILED or KILLED."""
        self._json("POST", "mlflow/runs/update", {"run_id": run, "status": status, "end_time": ended_ms})

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        raw = self._send(method, path, None if body is None else json.dumps(body).encode())
        try:
            answer = json.loads(raw)
        except ValueError as error:
            raise TrackingError(f"{method} {path}: the answer is not JSON") from error
        if not isinstance(answer, dict):
            raise TrackingError(f"{method} {path}: the answer is not an object")
        return answer

    def _send(self, method: str, path: str, content: bytes | None) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TrackingError(f"{method} {path}: no time left for the tracking server")
        address = f"{self._uri}/api/2.0/{path}"
        request = urllib.request.Request(address, content, self._headers, method=method)  # noqa: S310 - http(s) checked above
        try:
            with urllib.request.urlopen(request, timeout=min(REQUEST_TIMEOUT_S, left)) as answer:  # noqa: S310 - as above
                raw: bytes = answer.read()
                return raw
        except urllib.error.HTTPError as error:
            detail = error.read(500).decode(errors="replace")
            raise _RefusedError(f"{method} {path}: status {error.code}: {detail}", error.code) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise TrackingError(f"{method} {path}: {reason}") from error


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


class _RefusedError(TrackingError):
    """The server answered with an error status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status
