"""The program that makes Grafana's login: once, with a password of its own, and nowhere but in the Secret."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from agents.shared import new_secret
from agents.shared.api_server import ApiServer, Object
from agents.waiting import grafana_login

Answer = Callable[[], tuple[int, Object]]


class Server(ApiServer):
    """An API server that gives these answers, one after the other, and keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Any]] = []

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        self.sent.append((method, path, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer, {"message": "denied"}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_secret, "POLL_S", 0)
    monkeypatch.setattr(new_secret, "FORBIDDEN_S", 0.05)


def make(*answers: Any, limit_s: float = 5) -> tuple[bool, str, Server]:
    server = Server(*answers)
    return (*grafana_login.make(server, "grafana-login", "monitoring", limit_s), server)


def test_a_login_is_made_with_a_password_that_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    made, said, server = make(201)
    ((method, path, body),) = server.sent
    assert made
    assert (method, path) == ("POST", "/api/v1/namespaces/monitoring/secrets")
    assert body["metadata"] == {"name": "grafana-login", "namespace": "monitoring"}
    login = {key: base64.b64decode(text).decode() for key, text in body["data"].items()}
    assert login["username"] == "admin"
    assert len(login["password"]) >= 32
    assert login["password"] not in said + capsys.readouterr().out
    assert body["data"] != grafana_login.body("grafana-login", "monitoring")["data"]


def test_a_login_that_is_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    made, said, server = make(409)
    assert made and "monitoring/grafana-login exists" in said
    assert len(server.sent) == 1


def test_it_is_tried_again_while_the_api_server_or_a_new_role_is_not_ready() -> None:
    made, _, server = make(OSError("refused"), 503, 403, 201)
    assert made
    assert len(server.sent) == 4


def test_a_missing_right_ends_it_soon() -> None:
    made, said, _ = make(403, limit_s=60)
    assert not made
    assert said.endswith("403 denied")


def test_it_ends_when_its_time_is_over() -> None:
    made, said, _ = make(OSError("refused"), limit_s=0.05)
    assert not made
    assert "refused" in said
