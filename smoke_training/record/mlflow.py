"""A small client of MLflow's REST API (`/api/2.0/mlflow/...`, MLflow 3.17), standard library only.

The training image does not ship the mlflow package, and one run with a few hundred figures needs none. boto3
is used only where AWS itself runs the server, or stores its password; Google Cloud needs no library.
"""

import base64
import configparser
import importlib
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from smoke_training.reader import parsed
from smoke_training.record.aws import api as aws
from smoke_training.record.gcp import api as gcp

T = TypeVar("T")
Sign = Callable[[str, str, bytes | None, Mapping[str, str]], dict[str, str]]

# log-batch takes at most 1000 entries in all, of them at most 100 params and 100 tags.
AT_MOST = {"metrics": 800, "params": 100, "tags": 100}
REQUEST_TIMEOUT_S = 60.0  # a server may have to start first
# Statuses after which mlflow repeats a request (mlflow 3.17, utils/request_utils.py), and no response at all.
_TRANSIENT = frozenset({None, 408, 429, 500, 502, 503, 504})
_PAUSE_S = 0.5
# A second one is another run, so it has all the time, and is repeated only where the server did nothing.
_ONCE, _REFUSED = "mlflow/runs/create", frozenset({429, 503})
LOGIN = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
NOT_SET = "MLFLOW_TRACKING_URI is not set"


class TrackingError(RuntimeError):
    """The tracking server was unreachable or refused (then with its `status`); names the request."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class MetricPoint:
    """One metric point; timestamp in milliseconds since the epoch."""

    key: str
    value: float
    step: int
    timestamp: int


@dataclass(frozen=True)
class RecordedRun:
    """A run on the server."""

    id: str
    artifact_uri: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    deleted: bool


@dataclass(frozen=True)
class Patience:
    """Seconds of all requests together and of one; a failed one is repeated `retries` times."""

    seconds: float
    request_s: float
    retries: int


class TrackingServer:
    """One tracking server; `patience` counts from now on.

    `sign` returns the headers of a request (method, address, content, headers) for a guarded server.
    """

    def __init__(
        self, uri: str, credentials: tuple[str, str] | None, patience: Patience, sign: Sign | None = None
    ) -> None:
        scheme = urllib.parse.urlsplit(uri).scheme
        if scheme not in ("http", "https"):
            rule = "must be an http or https address, or the ARN of an MLflow App"
            raise TrackingError(f"MLFLOW_TRACKING_URI: got {uri!r}; {rule}")
        self._uri, self._patience, self._sign = uri.rstrip("/"), patience, sign
        self._deadline = time.monotonic() + patience.seconds
        self._headers = {"Content-Type": "application/json"}
        if credentials is not None:
            token = base64.b64encode(":".join(credentials).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def existing_experiment(self, name: str) -> str | None:
        """Return the id of the experiment, None if there is none of that name."""
        try:
            found = self._get("experiments/get-by-name", experiment_name=name)
        except TrackingError as error:
            if error.status == 404:
                return None
            raise
        return str(_inside(found, "experiment", "experiment_id"))

    def experiment(self, name: str) -> str:
        """Return the id of the experiment, created if needed (another run may create it meanwhile)."""
        found = self.existing_experiment(name)
        if found is not None:
            return found
        try:
            made = self._post("experiments/create", {"name": name})
            return str(_inside(made, "experiment_id"))
        except TrackingError:
            found = self.existing_experiment(name)
            if found is None:
                raise
            return found

    def search(self, experiment: str, tags: Mapping[str, str], at_most: int) -> list[RecordedRun]:
        """Return runs with all these tags, the one that started last first."""
        for value in tags.values():
            if "'" in value or "\\" in value:
                raise TrackingError(f"tag value {value!r}: a quote or backslash cannot be searched for")
        wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        body = {
            "experiment_ids": [experiment],
            "filter": wanted,
            "max_results": at_most,
            "order_by": ["attributes.start_time DESC"],
        }
        found = self._post("runs/search", body)
        return [_run(item) for item in found.get("runs", [])]

    def run(self, run: str) -> RecordedRun:
        """Return one run by its id."""
        return _run(_inside(self._get("runs/get", run_id=run), "run"))

    def create_run(self, experiment: str, name: str, started_ms: int, tags: Mapping[str, str]) -> RecordedRun:
        """Create a run with its tags; the server chooses a name for an empty one."""
        body = {"experiment_id": experiment, "run_name": name, "start_time": started_ms, "tags": _pairs(tags)}
        return _run(_inside(self._post("runs/create", body), "run"))

    def log(
        self,
        run: str,
        metrics: Sequence[MetricPoint] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log everything in as few requests as the limits allow; every request costs a login.

        Logging the same points and params a second time changes nothing, so an interrupted record can be
        completed later.
        """
        left: dict[str, list[Any]] = {
            "metrics": [vars(metric) for metric in metrics],
            "params": _pairs(params or {}),
            "tags": _pairs(tags or {}),
        }
        while any(left.values()):
            body: dict[str, Any] = {"run_id": run}
            for key, most in AT_MOST.items():
                body[key], left[key] = left[key][:most], left[key][most:]
            self._post("runs/log-batch", body)

    def upload(self, artifact_uri: str, name: str, content: bytes) -> None:
        """Store one artifact, in S3 if the server stores them there, else through its proxy."""
        if artifact_uri.startswith("s3://"):
            try:
                left = self._deadline - time.monotonic()
                aws.put_object(f"{artifact_uri.rstrip('/')}/{name}", content, left)
            except Exception as error:  # boto3 creates its exception classes at run time
                raise TrackingError(f"{artifact_uri}: {type(error).__name__}: {error}") from error
            return
        prefix = "mlflow-artifacts:"
        if not artifact_uri.startswith(prefix):
            raise TrackingError(f"artifacts are at {artifact_uri}, which the server does not proxy")
        folder = urllib.parse.urlsplit(artifact_uri).path.strip("/")
        path = urllib.parse.quote(f"{folder}/{name}")
        self._send("PUT", f"mlflow-artifacts/artifacts/{path}", content, "application/octet-stream")

    def update(self, run: str, status: str, ended_ms: int | None = None, name: str = "") -> None:
        """Set the status of the run, RUNNING, FINISHED, FAILED or KILLED, with its end, and rename it."""
        body = {"run_id": run, "run_name": name, "status": status, "end_time": ended_ms}
        self._post("runs/update", {key: value for key, value in body.items() if value})

    def _get(self, path: str, **query: str) -> dict[str, Any]:
        # A space as %20: signatures of AWS require it.
        requested = urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
        return self._json("GET", f"mlflow/{path}?{requested}", None)

    def _post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        return self._json("POST", f"mlflow/{path}", json.dumps(body).encode())

    def _json(self, method: str, path: str, content: bytes | None) -> dict[str, Any]:
        try:
            return parsed(self._send(method, path, content).decode(), "the answer")
        except ValueError as error:
            raise TrackingError(f"{method} {path}: {error}") from error

    def _send(
        self, method: str, path: str, content: bytes | None, content_type: str = "application/json"
    ) -> bytes:
        for again in range(self._patience.retries):
            try:
                return self._sent(method, path, content, content_type)
            except TrackingError as error:
                pause = _PAUSE_S * 2**again
                repeated = _REFUSED if path == _ONCE else _TRANSIENT
                if error.status not in repeated or time.monotonic() + pause > self._deadline:
                    raise
                time.sleep(pause)
        return self._sent(method, path, content, content_type)

    def _sent(self, method: str, path: str, content: bytes | None, content_type: str) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TrackingError(f"{method} {path}: no time left for the tracking server")
        address = f"{self._uri}/api/2.0/{path}"
        headers = {**self._headers, "Content-Type": content_type}
        try:
            if self._sign is not None:
                headers = self._sign(method, address, content, headers)
            request = urllib.request.Request(address, content, headers, method=method)  # noqa: S310 - http(s) checked above
            most = left if path == _ONCE else min(self._patience.request_s, left)
            with urllib.request.urlopen(request, timeout=most) as answer:  # noqa: S310 - as above
                raw: bytes = answer.read()
                return raw
        except urllib.error.HTTPError as error:
            detail = error.read(500).decode(errors="replace")
            raise TrackingError(f"{method} {path}: status {error.code}: {detail}", error.code) from error
        except Exception as error:  # boto3 creates its exception classes at run time
            reason = getattr(error, "reason", error)
            raise TrackingError(f"{method} {path}: {reason}") from error


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _inside(answer: Any, *path: str) -> Any:
    for key in path:
        if not isinstance(answer, dict) or key not in answer:
            raise TrackingError(f"the tracking server's response has no {'.'.join(path)}")
        answer = answer[key]
    return answer


def _run(found: Any) -> RecordedRun:
    data = _inside(found, "data")
    return RecordedRun(
        id=str(_inside(found, "info", "run_id")),
        artifact_uri=str(_inside(found, "info", "artifact_uri")),
        tags=_mapping(data.get("tags", [])),
        params=_mapping(data.get("params", [])),
        deleted=_inside(found, "info").get("lifecycle_stage") == "deleted",
    )


def _mapping(pairs: Any) -> dict[str, str]:
    return {str(_inside(pair, "key")): str(_inside(pair, "value")) for pair in pairs}


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return the result of `work`; TrackingError after `seconds`.

    A socket timeout bounds one read, not a server that responds byte by byte, nor a name lookup. The thread
    is abandoned after the timeout; it ends with the process at the latest.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="tracking", daemon=True).start()
    try:
        return outcome.result(max(0.0, seconds))
    except TimeoutError as error:
        raise TrackingError(f"no response of the tracking server within {max(0.0, seconds):.0f} s") from error


def connect(
    environment: Mapping[str, str], seconds: float, request_s: float = REQUEST_TIMEOUT_S, retries: int = 0
) -> TrackingServer:
    """Return the tracking server of the environment; TrackingError without one. See `Patience`."""
    patience = Patience(seconds, request_s, retries)
    uri = environment.get("MLFLOW_TRACKING_URI")
    if not uri:
        raise TrackingError(NOT_SET)
    if gcp.sleeps(environment):
        login = gcp.IapLogin(uri)
        return TrackingServer(uri, None, patience, lambda _, __, ___, known: {**known, **login.header()})
    if not uri.startswith("arn:"):
        return TrackingServer(uri, _credentials(environment), patience)
    try:
        app = aws.MlflowApp(uri, environment)
    except Exception as error:  # boto3 creates its exception classes at run time
        raise TrackingError(f"{uri}: {type(error).__name__}: {error}") from error
    return TrackingServer(app.address, None, patience, app.headers)


def _credentials(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password: from Secrets Manager, else the environment or MLflow's credentials file."""
    if arn := environment.get("MLFLOW_CREDENTIALS_SECRET_ARN"):
        return _from_secret(arn, environment.get("AWS_REGION"))
    kept = _from_file(Path(environment.get("HOME", "/nonexistent")) / ".mlflow" / "credentials")
    user, password = (environment.get(name) or kept.get(name.lower()) for name in LOGIN)
    return (user, password) if user and password else None


def _from_file(path: Path) -> Mapping[str, str]:
    """Read such a file (mlflow 3.17, utils/credentials.py); empty without one."""
    config = configparser.ConfigParser()
    try:
        config.read(path)
    except (configparser.Error, OSError, UnicodeDecodeError) as error:
        raise TrackingError(f"credentials {path}: {type(error).__name__}") from error
    return dict(config["mlflow"]) if config.has_section("mlflow") else {}


def _from_secret(arn: str, region: str | None) -> tuple[str, str]:
    """Read the JSON secret {"username", "password"}; every way this can fail becomes a TrackingError."""
    try:
        boto3 = importlib.import_module("boto3")  # only needed here, and not in every training image
        client = boto3.client("secretsmanager", region_name=region)
        secret = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
        return str(secret["username"]), str(secret["password"])
    except Exception as error:  # boto3 creates its exception classes at run time
        raise TrackingError(f"credentials {arn}: {type(error).__name__}: {error}") from error
