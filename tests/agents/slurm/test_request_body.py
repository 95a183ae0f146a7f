"""Requests of hostile jobs to the proxy of a node: bodies that are too much, or say what they must not."""

import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from typing import IO, Any

import pytest

from agents.mlflow_server import bodies
from agents.slurm import mlflow_proxy
from agents.slurm.aws.mlflow_app import MOST_BYTES, AppUpstream
from agents.slurm.mlflow_proxy import ARTIFACTS, ProxyServer
from agents.slurm.upstream import Reply, Upstream

API = "/api/2.0/mlflow"
CREATE, VERSION, LOG = f"{API}/experiments/create", f"{API}/model-versions/create", f"{API}/runs/log-batch"
TRACES, SPANS = "/api/3.0/mlflow/traces", "/v1/traces"
CHUNKED = "Transfer-Encoding: chunked"


class Recorder:
    """An upstream that records bodies; with `release`, requests stay in it until then."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.inside, self.most = 0, 0
        self.changed = threading.Condition()
        self.release: threading.Event | None = None

    def call(self, method: str, target: str, content: bytes, content_type: str) -> Reply:
        self.bodies.append(content)
        with self.changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.changed.notify_all()
        if self.release:
            self.release.wait()
        with self.changed:
            self.inside -= 1
        return Reply(200, "application/json", iter([b"{}"]))

    def put(self, path: str, body: IO[bytes], length: int) -> Reply:
        return self.call("PUT", path, body.read(), "")

    def get(self, path: str) -> Reply:
        return self.call("GET", path, b"", "")

    listed = get


class Job:
    """A job that writes what it likes to the port."""

    def __init__(self, port: int) -> None:
        self._port = port

    def start(self, method: str, path: str, *lines: str, body: bytes = b"") -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port))
        made.sendall("\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *lines, "", ""]).encode() + body)
        return made

    def ask(self, method: str, path: str, *lines: str, body: bytes = b"") -> int:
        """The status of a request."""
        with self.start(method, path, *lines, body=body) as made:
            return status(made)

    def post(self, path: str, body: bytes, *lines: str) -> int:
        return self.ask("POST", path, f"Content-Length: {len(body)}", *lines, body=body)


def status(made: socket.socket) -> int:
    with made.makefile("rb") as answer:
        return int(answer.read().split()[1])


@pytest.fixture
def upstream() -> Recorder:
    return Recorder()


@pytest.fixture
def job(upstream: Recorder) -> Iterator[Job]:
    with _served(upstream) as found:
        yield found


@contextlib.contextmanager
def _served(upstream: Upstream) -> Iterator[Job]:
    with ProxyServer(upstream, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Job(server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", [LOG, f"{ARTIFACTS}/1/model"])
@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (("Content-Length: -1",), b""),
        (("Content-Length: +1",), b"{"),
        (("Content-Length: 1_0",), b"{}"),
        (("Content-Length: 1", "Content-Length: 2"), b"{}"),
        (("Content-Length: 2", CHUNKED), b"0\r\n\r\n"),
        (("Transfer-Encoding: gzip",), b"0\r\n\r\n"),
        ((CHUNKED,), b"-5\r\n"),
        ((CHUNKED,), b"0x2\r\n{}\r\n0\r\n\r\n"),
        ((CHUNKED,), b"1\r\n{}\r\n0\r\n\r\n"),
    ],
)
def test_sizes_are_numbers_of_bytes(
    job: Job, upstream: Recorder, path: str, lines: tuple[str, ...], body: bytes
) -> None:
    method = "POST" if path == LOG else "PUT"
    assert job.ask(method, path, *lines, body=body) == 400
    assert upstream.bodies == []


@pytest.mark.parametrize(
    ("path", "line", "body"),
    [
        (LOG, f"Content-Length: {bodies.JSON_BYTES + 1}", b""),
        (LOG, CHUNKED, f"{bodies.JSON_BYTES + 1:x}\r\n".encode()),
        (f"{ARTIFACTS}/1/model", CHUNKED, f"{bodies.OTHER_BYTES + 1:x}\r\n".encode()),
    ],
)
def test_what_is_too_much_is_refused_before_it_is_read(
    job: Job, upstream: Recorder, path: str, line: str, body: bytes
) -> None:
    assert job.ask("POST" if path == LOG else "PUT", path, line, body=body) == 413
    assert upstream.bodies == []


def test_bodies_of_clients_pass(job: Job, upstream: Recorder) -> None:
    assert job.ask("PUT", f"{ARTIFACTS}/1/empty", CHUNKED, body=b"0\r\n\r\n") == 200
    assert job.ask("POST", LOG, CHUNKED, body=b"1\r\n{\r\n1;a=b\r\n}\r\n0\r\n\r\n") == 200
    assert job.post(CREATE, b'{"name": "a", "artifact_location": ""}') == 200
    assert job.post(VERSION, b'{"name": "a", "source": "runs:/1/model"}') == 200
    packed = gzip.compress(b"spans")
    assert job.post(SPANS, packed, "Content-Type: application/x-protobuf", "Content-Encoding: gzip") == 200
    assert upstream.bodies[:2] == [b"", b"{}"] and upstream.bodies[-1] == b"spans"


def _twice(value: Any) -> bytes:
    return json.dumps(json.dumps(value)).encode()


LOCATION = {"name": "Other Team", "artifact_location": "s3://mine/runs"}
TAGGED = {"trace": {"trace_info": {"tags": {bodies.LOCATIONS[0]: "s3://mine"}}}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CREATE, json.dumps(LOCATION).encode()),
        (CREATE, _twice(LOCATION)),
        (CREATE.replace("create", "%63reate"), json.dumps(LOCATION).encode()),
        (CREATE.replace("/api/", "/ajax-api/"), json.dumps(LOCATION).encode()),
        (TRACES, json.dumps(TAGGED).encode()),
        (SPANS, json.dumps(TAGGED).encode()),
        (VERSION, b'{"name": "a", "source": "s3://other/model"}'),
        (VERSION, b'{"name": "a", "source": "/etc"}'),
        (VERSION, _twice({"name": "a", "source": "file:///etc"})),
        (VERSION, b'{"name": "a", "source": ["runs:/1"]}'),
        (VERSION, b"name: a"),
    ],
)
def test_a_job_chooses_no_place_of_data(job: Job, upstream: Recorder, path: str, body: bytes) -> None:
    assert job.post(path, body) == 403
    assert upstream.bodies == []


def test_an_artifact_that_s3_takes_in_parts_alone_is_refused_before_it_is_read() -> None:
    app = AppUpstream("arn:aws:sagemaker:us-east-1:123456789012:mlflow-app/a", "s3://out/mlflow")
    with _served(app) as job:
        length = f"Content-Length: {MOST_BYTES + 1}"
        assert job.ask("PUT", f"{ARTIFACTS}/1/model", length) == 413


def test_so_many_requests_run_at_once_and_others_wait(job: Job, upstream: Recorder) -> None:
    upstream.release = threading.Event()
    more = mlflow_proxy.REQUESTS + 3
    made = [job.start("GET", f"{API}/runs/get?run_id={one}") for one in range(more)]
    with upstream.changed:
        assert upstream.changed.wait_for(lambda: upstream.inside == mlflow_proxy.REQUESTS, 20)
    upstream.release.set()
    assert [status(one) for one in made] == [200] * more
    assert upstream.most == mlflow_proxy.REQUESTS
    for one in made:
        one.close()
