"""Requests to an API server that does not answer: they end, whatever repeats them."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import urllib3

from infra.clouds import kubectl
from infra.clouds.kubectl import ClusterApi


class Answers:
    """A server with this status, or none, for each request; `at` is the clock of the program that asks."""

    def __init__(self, status: int | None) -> None:
        self.asked, self.at, self.takes_s = 0, 0.0, 0.0
        self.ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                outer.at += outer.takes_s
                if status is None:
                    outer.ended.wait()
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    @property
    def api(self) -> ClusterApi:
        return ClusterApi("cluster", urllib3.HTTPConnectionPool("127.0.0.1", self.server.server_port))


@pytest.fixture
def answers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    found = Answers(request.param)
    monkeypatch.setattr(kubectl, "_SECONDS", urllib3.Timeout(connect=5, read=0.2))
    monkeypatch.setattr(kubectl, "time", SimpleNamespace(monotonic=lambda: found.at))
    monkeypatch.setattr(kubectl._Waits, "sleep", lambda *_: None)
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        found.ended.set()
        found.server.shutdown()
        thread.join()
        found.server.server_close()


@pytest.mark.parametrize("answers", [None], indirect=True)
def test_a_server_that_never_answers_is_asked_once(answers: Answers) -> None:
    assert answers.api.get("/api/v1/pods").status == 0
    assert answers.asked == 1


@pytest.mark.parametrize("answers", [502], indirect=True)
@pytest.mark.parametrize(("takes_s", "asked"), [(0.0, 7), (30.0, 2), (70.0, 1)])
def test_a_proxy_without_a_server_is_asked_for_a_minute(answers: Answers, takes_s: float, asked: int) -> None:
    answers.takes_s = takes_s
    assert answers.api.get("/api/v1/pods").status == 0
    assert answers.asked == asked
