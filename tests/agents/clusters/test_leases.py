"""The Lease of the manager: on connected workers only, made where it is missing."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agents.clusters.leases import LEASE, RENEW_S, STALE_S, VIEW_S, LeaseRenewer, renewed
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServerError
from agents.shared.times import seconds

WORKERS = EAST, WEST, SOUTH = [
    Worker(name, f"https://{name}", "", "n", "manager") for name in ("east", "west", "south")
]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Requests as method and worker; `east` has no Lease yet, `south` does not respond."""
    found: list[tuple[str, str]] = []

    def send(self: WorkerApi, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        found.append((method, self.worker.name))
        assert body["spec"]["renewTime"].endswith("Z")
        if self.worker.name == "south":
            raise TimeoutError
        if self.worker.name == "east" and method == "PATCH":
            assert path.endswith(f"/{LEASE}")
            raise ApiServerError(404, "not found")
        return {}

    monkeypatch.setattr(WorkerApi, "send", send)
    return found


def renewer(*workers: Worker, clock: Callable[[], float] = lambda: 0.0, **tokens: str) -> LeaseRenewer:
    """A renewer for which Kueue is connected to all workers."""
    leases = LeaseRenewer(workers, tokens, clock)
    leases.seen({worker.name for worker in workers})
    return leases


def test_lost_workers_and_those_without_a_token_are_not_renewed(sent: list[tuple[str, str]]) -> None:
    leases = LeaseRenewer(WORKERS, {"east": "a", "west": "b"})
    leases.renew(EAST)
    assert sent == [], "it is not known yet whether Kueue is connected"
    leases.seen({"east", "south"})
    for worker in WORKERS:
        leases.renew(worker)
    assert sent == [("PATCH", "east"), ("POST", "east")]


def test_a_worker_that_does_not_respond_is_tried_again(sent: list[tuple[str, str]]) -> None:
    leases = renewer(SOUTH, south="a")
    leases.renew(SOUTH)
    leases.renew(SOUTH)
    assert sent == [("PATCH", "south")] * 2


def test_a_lease_that_was_renewed_is_renewed_again_after_seconds(sent: list[tuple[str, str]]) -> None:
    now = [1.0]
    leases = renewer(WEST, clock=lambda: now[0], west="b")
    leases.renew(WEST)
    leases.renew(WEST)
    assert sent == [("PATCH", "west")]
    now[0] += RENEW_S
    leases.renew(WEST)
    assert sent == [("PATCH", "west")] * 2


def test_a_worker_whose_lease_is_not_renewed_is_stale_until_it_is(sent: list[tuple[str, str]]) -> None:
    now, tokens = [0.0], {"east": "a"}
    leases = LeaseRenewer(WORKERS[:2], tokens, lambda: now[0])
    for now[0] in (0.0, STALE_S + 1):
        leases.seen({"east", "west"})
        leases.renew(EAST)
        leases.renew(WEST)
    assert leases.stale() == {"west"}
    tokens["west"] = "b"
    leases.renew(WEST)
    assert leases.stale() == set()


def test_time_in_which_nothing_was_tried_says_nothing_about_a_worker(sent: list[tuple[str, str]]) -> None:
    now, tokens = [0.0], {"west": "b"}
    leases = LeaseRenewer(WORKERS, tokens, lambda: now[0])
    leases.seen({"west", "south"})
    leases.renew(WEST)
    leases.renew(SOUTH)
    now[0] = 10 * STALE_S
    assert leases.stale() == set()
    leases.seen({"west", "south"})
    leases.renew(WEST)
    leases.renew(SOUTH)
    assert leases.stale() == {"south"}


def test_an_attempt_that_hangs_is_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    leases = renewer(WEST, clock=lambda: now[0], west="b")
    stale = []

    def send(*_: object) -> dict[str, Any]:
        for now[0] in (1.0, STALE_S, STALE_S + 1):
            stale.append(leases.stale())
        return {}

    monkeypatch.setattr(WorkerApi, "send", send)
    leases.renew(WEST)
    assert stale == [set(), set(), {"west"}]
    assert leases.stale() == set()


def test_a_lease_ages_while_it_is_not_known_whether_kueue_is_connected(sent: list[tuple[str, str]]) -> None:
    now = [0.0]
    leases = renewer(WEST, clock=lambda: now[0], west="b")
    now[0] = VIEW_S + 1
    leases.renew(WEST)
    assert sent == []
    leases.seen({"west"})
    leases.renew(WEST)
    assert sent == [("PATCH", "west")]


def test_a_lease_has_the_time_of_its_server() -> None:
    rows = [{"time": "2026-11-29T10:00:00Z"}, {"time": "2026-11-29T10:05:00Z"}, {}]
    lease = {"metadata": {"managedFields": rows}, "spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}
    assert renewed(lease) == seconds("2026-11-29T10:05:00Z")
    assert renewed({"metadata": {}}) is None
