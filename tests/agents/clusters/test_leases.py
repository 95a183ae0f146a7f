"""The Lease of the manager: on connected workers only, made where it is missing."""

from collections.abc import Mapping
from typing import Any

import pytest

from agents.clusters.leases import LEASE, STALE_S, LeaseRenewer, renewed
from agents.clusters.workers import Worker, WorkerApi
from agents.shared.api_server import ApiServerError
from agents.shared.times import seconds

WORKERS = [Worker(name, f"https://{name}", "", "n", "manager") for name in ("east", "west", "south")]


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


def test_lost_workers_and_those_without_a_token_are_not_renewed(sent: list[tuple[str, str]]) -> None:
    LeaseRenewer(WORKERS, {"east": "a", "west": "b"}).renew(lost={"west"})
    assert sent == [("PATCH", "east"), ("POST", "east")]


def test_a_worker_that_does_not_respond_stops_no_other(sent: list[tuple[str, str]]) -> None:
    leases = LeaseRenewer([WORKERS[2], WORKERS[1]], {"south": "a", "west": "b"})
    leases.renew(lost=())
    leases.renew(lost=())
    assert sent == [("PATCH", "south"), ("PATCH", "west")] * 2


def test_a_worker_whose_lease_is_not_renewed_is_stale_until_it_is(sent: list[tuple[str, str]]) -> None:
    now, tokens = [0.0], {"east": "a"}
    leases = LeaseRenewer(WORKERS[:2], tokens, lambda: now[0])
    now[0] = STALE_S + 1
    leases.renew(lost=())
    assert leases.stale() == {"west"}
    tokens["west"] = "b"
    leases.renew(lost=())
    assert leases.stale() == set()
    now[0] = 3 * STALE_S
    assert leases.stale() == {"east", "west"}


def test_a_lease_has_the_time_of_its_server() -> None:
    rows = [{"time": "2026-11-29T10:00:00Z"}, {"time": "2026-11-29T10:05:00Z"}, {}]
    lease = {"metadata": {"managedFields": rows}, "spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}
    assert renewed(lease) == seconds("2026-11-29T10:05:00Z")
    assert renewed({"metadata": {}}) is None
