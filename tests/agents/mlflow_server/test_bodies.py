"""Bodies of requests in front of MLflow: read after the login, up to a limit, apart from other requests."""

import asyncio
import base64
import contextlib
import gzip
import json
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import pytest

from agents.mlflow_server import bodies
from agents.mlflow_server.guard import Guard

SPANS, TRACES = "/v1/traces", "/api/3.0/mlflow/traces"
CREATE = "/api/2.0/mlflow/experiments/create"
SEARCH = "/api/2.0/mlflow/runs/search"
UPLOAD = "/api/2.0/mlflow-artifacts/artifacts/1/model.bin"
PROTOCOL_BUFFERS = {"content-type": "application/x-protobuf"}
PACKED = {**PROTOCOL_BUFFERS, "content-encoding": "gzip"}
PART = 2**16
T = TypeVar("T")
NONE: Mapping[str, str] = MappingProxyType({})


def run(work: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, which would leave other tests of this process without a loop."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@dataclass
class Front:
    """The guard with users whose passwords are their names, before an application that records."""

    received: list[bytes] = field(default_factory=list)
    headers: dict[bytes, bytes] = field(default_factory=dict)
    read: int = 0
    """Bytes that were asked for."""
    status: int = 0
    release: asyncio.Event | None = None
    """Requests stay in the application until then."""

    def __post_init__(self) -> None:
        self._guard = Guard(self._app, "admin", lambda user, password: user == password)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        parts = []
        while True:
            message = await receive()
            parts.append(message["body"])
            if not message["more_body"]:
                break
        self.received.append(b"".join(parts))
        self.headers = dict(scope["headers"])
        if self.release:
            await self.release.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def ask(
        self,
        path: str,
        body: bytes,
        user: str | None = "a",
        *,
        chunked: bool = False,
        headers: Mapping[str, str] = NONE,
    ) -> int:
        """The status of a request."""
        sizes = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(body))}
        if user is not None:
            sizes["authorization"] = "Basic " + base64.b64encode(f"{user}:{user}".encode()).decode()
        named = {**sizes, **headers}
        at, statuses = 0, list[Any]()

        async def receive() -> Any:
            nonlocal at
            at += PART
            self.read += PART
            return {"type": "http.request", "body": body[at - PART : at], "more_body": at < len(body)}

        async def send(message: Any) -> None:
            statuses.append(message.get("status"))

        sent = [(name.encode(), value.encode()) for name, value in named.items()]
        scope = {"type": "http", "method": "POST", "path": path, "headers": sent}
        await self._guard(scope, receive, send)
        return int(statuses[0])


def ask(
    path: str,
    body: bytes,
    user: str | None = "a",
    *,
    chunked: bool = False,
    headers: Mapping[str, str] = NONE,
) -> Front:
    """A front after a request."""
    front = Front()
    front.status = run(front.ask(path, body, user, chunked=chunked, headers=headers))
    return front


@pytest.mark.parametrize("path", [SPANS, TRACES, CREATE, SEARCH, UPLOAD])
@pytest.mark.parametrize("chunked", [True, False])
def test_nothing_is_read_before_the_login(path: str, chunked: bool) -> None:
    wrong = {"authorization": "Basic " + base64.b64encode(b"a:wrong").decode()}
    for login in ({}, wrong, {"authorization": "Basic x"}, {"authorization": "Bearer YTph"}):
        front = Front()
        assert run(front.ask(path, b"{}" * PART, None, chunked=chunked, headers=login)) == 401
        assert front.read == 0 and front.received == []


@pytest.mark.parametrize(
    ("path", "most", "headers"),
    [
        (SPANS, bodies.OTHER_BYTES, PROTOCOL_BUFFERS),
        (SPANS, bodies.JSON_BYTES, {"content-type": "application/json"}),
        (TRACES, bodies.JSON_BYTES, {}),
        (CREATE, bodies.JSON_BYTES, {}),
        (SEARCH, bodies.JSON_BYTES, {}),
        ("/ajax-api/2.0/mlflow/upload-artifact", bodies.OTHER_BYTES, {}),
    ],
)
def test_a_body_has_a_limit(path: str, most: int, headers: dict[str, str]) -> None:
    over = b" " * (most + 1)
    declared = ask(path, over, headers=headers)
    assert (declared.status, declared.read) == (413, 0)
    streamed = ask(path, over, chunked=True, headers=headers)
    assert (streamed.status, streamed.received) == (413, []) and streamed.read <= most + 2 * PART
    fits = b'"' + b"x" * (most - 3) + b'"'
    if headers != PROTOCOL_BUFFERS and path != SEARCH:
        fits = json.dumps({"name": "x" * (most - 20)}).encode()
    assert ask(path, fits, headers=headers).received == [fits]


def test_an_artifact_is_passed_on_as_it_comes() -> None:
    body = b"x" * (2 * bodies.OTHER_BYTES)
    assert ask(UPLOAD, body, chunked=True).received == [body]


@pytest.mark.parametrize("path", [SPANS, TRACES, CREATE])
def test_other_requests_go_on_while_a_body_is_searched(path: str) -> None:
    body = b"[" + b'{"a":1},' * (bodies.JSON_BYTES // 8 - 1) + b"1]"
    front, turns = Front(), 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def both() -> int:
        beside = asyncio.create_task(other())
        try:
            return await front.ask(path, body)
        finally:
            beside.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beside

    assert run(both()) == 200 and front.received == [body]
    assert turns > 0


def test_a_user_holds_so_much_and_no_more_and_others_are_served() -> None:
    body = b"x" * bodies.OTHER_BYTES
    fitting = bodies.USER_BYTES // bodies.OTHER_BYTES

    async def attack() -> None:
        front = Front(release=asyncio.Event())
        assert front.release
        held = [asyncio.create_task(front.ask(SPANS, body, headers=PROTOCOL_BUFFERS)) for _ in range(fitting)]
        while len(front.received) < fitting:
            await asyncio.sleep(0)
        assert await front.ask(SPANS, body, headers=PROTOCOL_BUFFERS) == 429
        other = asyncio.create_task(front.ask(SPANS, body, "b", headers=PROTOCOL_BUFFERS))
        while len(front.received) <= fitting:
            await asyncio.sleep(0)
        front.release.set()
        assert await asyncio.gather(*held, other) == [200] * (fitting + 1)
        assert await front.ask(SPANS, body, headers=PROTOCOL_BUFFERS) == 200

    run(attack())


def test_all_users_together_hold_what_a_worker_can() -> None:
    body = b"x" * bodies.OTHER_BYTES
    fitting = bodies.WORKER_BYTES // bodies.OTHER_BYTES

    async def attack() -> None:
        front = Front(release=asyncio.Event())
        assert front.release
        users = [chr(ord("a") + one) for one in range(fitting + 1)]
        held = [
            asyncio.create_task(front.ask(SPANS, body, user, headers=PROTOCOL_BUFFERS))
            for user in users[:fitting]
        ]
        while len(front.received) < fitting:
            await asyncio.sleep(0)
        assert await front.ask(SPANS, body, users[-1], headers=PROTOCOL_BUFFERS) == 429
        front.release.set()
        assert await asyncio.gather(*held) == [200] * fitting

    run(attack())


def test_spans_may_be_compressed_and_reach_mlflow_as_they_are() -> None:
    front = ask(SPANS, gzip.compress(b"spans"), headers=PACKED)
    assert front.received == [b"spans"]
    assert b"content-encoding" not in front.headers and front.headers[b"content-length"] == b"5"


# Names of tests contain the bodies: workers have to agree on them, so no body holds the time.
@pytest.mark.parametrize(
    ("body", "encoding", "refusal"),
    [
        (gzip.compress(b"x" * (bodies.OTHER_BYTES + 1), mtime=0), "gzip", 413),
        (gzip.compress(b"spans", mtime=0)[:-4], "gzip", 403),
        (gzip.compress(b"a", mtime=0) * 2, "gzip", 403),
        (b"spans", "gzip", 403),
        (b"spans", "zstd", 403),
        (gzip.compress(gzip.compress(b"spans", mtime=0), mtime=0), "gzip, gzip", 403),
    ],
)
def test_a_compressed_body_is_one_stream_of_gzip_with_a_limit(
    body: bytes, encoding: str, refusal: int
) -> None:
    front = ask(SPANS, body, headers={**PROTOCOL_BUFFERS, "content-encoding": encoding})
    assert (front.status, front.received) == (refusal, [])


@pytest.mark.parametrize("tag", bodies.LOCATIONS)
def test_a_tag_of_a_location_is_found_however_it_is_sent(tag: str) -> None:
    attribute = f"mlflow.traceTag.{tag}".encode()
    assert ask(SPANS, b"\x0a" + attribute, headers=PROTOCOL_BUFFERS).status == 403
    assert ask(SPANS, gzip.compress(attribute), headers=PACKED).status == 403
    escaped = json.dumps({"k": tag}).replace(tag, tag.replace(".", "\\u002e")).encode()
    for path in (SPANS, TRACES):
        assert ask(path, escaped, headers={"content-type": "application/json"}).status == 403
