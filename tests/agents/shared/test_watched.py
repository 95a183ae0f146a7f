"""Watches over a connection: changes, errors of the server, and what is no change."""

import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from agents.shared.api_server import ApiServer, ApiServerError
from rehearsal.controlplane.certificates import Authority
from rehearsal.dataplane.loopback import LoopbackHandler, LoopbackServer

POD = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "5"}}}
BOOKMARK = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}}
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}


class Answering:
    """Bytes that the server answers with before it closes the connection."""

    content = b""


class Handler(LoopbackHandler, BaseHTTPRequestHandler):
    """Answers every request alike, without a length, as a watch does."""

    protocol_version = "HTTP/1.0"
    answering: Answering

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answering.content)


@pytest.fixture
def said() -> Answering:
    return Answering()


@pytest.fixture
def server(tmp_path: Path, said: Answering, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    authority = Authority(tmp_path / "authority", "kubernetes")
    pair = authority.sign("api")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    started = LoopbackServer(Handler, tls=context, answering=said)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(started.port))
    yield ApiServer(tmp_path)
    started.stop()


def lines(*changes: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in changes)


def seen(server: ApiServer) -> tuple[list[Any], Exception | None]:
    """Changes, and the error that ended the watch."""
    found: list[Any] = []
    try:
        found.extend(server.watched("/api/v1/pods", "1", 5))
    except (ApiServerError, OSError) as error:
        return found, error
    return found, None


def test_changes_and_bookmarks_are_passed_on(server: ApiServer, said: Answering) -> None:
    said.content = lines(POD, BOOKMARK)
    assert seen(server) == ([POD, BOOKMARK], None)


def test_an_error_of_the_server_has_its_status(server: ApiServer, said: Answering) -> None:
    said.content = lines(POD, GONE)
    found, error = seen(server)
    assert found == [POD]
    assert isinstance(error, ApiServerError) and error.status == 410


@pytest.mark.parametrize(
    "end",
    [
        lines(POD)[:30],
        lines({"kind": "PodList", "items": []}),
        lines({"type": "ADDED"}),
        lines({"type": "ADDED", "object": None}),
        b"<html>upstream connect error</html>\n",
        b"\xff\n",
    ],
    ids=["torn", "list", "bare", "null", "page", "bytes"],
)
def test_what_is_no_change_ends_the_watch_and_it_is_repeated(
    server: ApiServer, said: Answering, end: bytes
) -> None:
    said.content = lines(POD) + end
    found, error = seen(server)
    assert found == [POD], "the version to continue from"
    assert isinstance(error, OSError)
