"""Health and metrics of a long-running program."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from agents.shared import health
from agents.shared.health import Health


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def asked(now: list[float]) -> Iterator[Health]:
    made = Health(0, lambda: "trainstack_things 1\n", patience_s=30)
    yield made
    made.stop()


def said(asked: Health, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{asked.port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_one_that_did_not_come_around_is_not_well(asked: Health, now: list[float]) -> None:
    assert said(asked, "/healthz") == (200, "ok\n")
    now[0] = 31
    assert said(asked, "/healthz")[0] == 503
    asked.beat()
    assert said(asked, "/healthz") == (200, "ok\n")


def test_metrics_are_served_whether_it_is_healthy_or_not(asked: Health, now: list[float]) -> None:
    now[0] = 1000
    assert said(asked, "/metrics?x=1") == (200, "trainstack_things 1\n")
    assert said(asked, "/") == (404, "not found\n")


def test_it_listens_where_the_pod_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a rehearsal two programs have the same port, at addresses of their own."""
    made: list[Health] = []
    try:
        for address in ("127.0.0.1", "127.64.0.9"):
            monkeypatch.setenv(health.ADDRESS, address)
            made.append(Health(made[0].port if made else 0, lambda: "", patience_s=30))
        with urllib.request.urlopen(f"http://127.64.0.9:{made[0].port}/healthz", timeout=10) as answer:
            assert answer.status == 200
    finally:
        for one in made:
            one.stop()
