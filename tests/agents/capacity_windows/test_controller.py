"""The controller of windows: a refusal for one job stops no decision on another, and causes no lists."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.capacity_windows.controller import WindowController, run
from agents.capacity_windows.windows import BlockPeriod, CapacityWindow
from agents.capacity_windows.workloads import Workloads
from agents.shared.api_server import ApiServerError

CHECK, NOW = "window-a100", datetime(2026, 11, 25, 12, tzinfo=UTC)
BLOCK = BlockPeriod(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), NOW - NOW)
WINDOWS = {CHECK: CapacityWindow("a100", BLOCK, None, ())}


class StopError(Exception):
    """The program ends."""


def job(name: str) -> dict[str, Any]:
    """A job with quota, which waits for the check and has a time limit."""
    return {
        "metadata": {"uid": name, "name": name, "namespace": f"team-{name}", "resourceVersion": "1"},
        "spec": {"maximumExecutionTimeSeconds": 600},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}],
            "admissionChecks": [{"name": CHECK, "state": "Pending"}],
        },
    }


class Server:
    """An API server that refuses changes in the namespace `team-a`."""

    def __init__(self) -> None:
        self.ready: list[str] = []
        self.lists, self.watches = 0, 0

    def must(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        if "admissionchecks" in path:
            return {"metadata": {"generation": 1}}
        if "/team-a/" in path:
            raise ApiServerError(403, "forbidden: the namespace is being terminated")
        self.ready.append(path.split("/")[-2])
        return {}

    def paged(self, path: str) -> Iterator[tuple[list[Any], str]]:
        self.lists += 1
        yield [job("a"), job("b")], "1"

    def watched(self, path: str, version: str, seconds: float) -> Iterator[Any]:
        self.watches += 1
        if self.watches == 5:
            raise StopError
        if self.watches in (2, 4):
            raise ApiServerError(500 if self.watches == 2 else 410, "an error")
        yield {"type": "MODIFIED", "object": job("c")}


def test_a_namespace_that_refuses_stops_no_other_and_only_a_gap_is_followed_by_a_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server: Any = Server()
    workloads = Workloads(server)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(StopError):
        run(workloads, WindowController(workloads, WINDOWS, lambda: NOW), lambda: None)
    assert {"b", "c"} <= set(server.ready) and server.lists == 2
