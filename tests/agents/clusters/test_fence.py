"""Jobs of a manager that is away are ended in time, and those of a slow or upgraded cluster are not."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.clusters.fence import AFTER_S, ORIGIN_LABEL, Fence, fences
from agents.shared.api_server import ApiServerError
from agents.shared.times import seconds, stamp
from components.kubernetes.queueing.kueue_values import WORKER_LOST_TIMEOUT

T = seconds("2026-11-29T00:00:00Z")


class Server:
    """The API server of a worker, with one Job of a manager and one of a member."""

    def __init__(self) -> None:
        self.clock, self.renewed, self.up = T, T, True
        self.lease = True
        self.jobs = {"sent": {ORIGIN_LABEL: "fleet"}, "own": {}}

    def now(self) -> int:
        return self.clock

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if not self.up:
            raise ConnectionRefusedError
        if method == "DELETE":
            assert body["preconditions"]["uid"]
            self.jobs.pop(path.rpartition("/")[2], None)
            return 200, {}
        if not self.lease:
            return 404, {}
        return 200, {"metadata": {"managedFields": [{"time": stamp(self.renewed)}]}}

    def every(self, path: str, labelSelector: str) -> Iterator[Any]:  # noqa: N803 - of the API
        assert "/namespaces/" not in path
        for name, labels in [*self.jobs.items()]:
            if labelSelector in labels and path.endswith("/jobs"):
                yield {"metadata": {"namespace": "team-a", "name": name, "uid": name}}


def looked(server: Server, fence: Fence, until: int, every_s: int = 5) -> int | None:
    """Let the program look until a time; returns the seconds after which the Job was ended."""
    for at in range(server.clock, T + until + 1, every_s):
        server.clock = at
        try:
            fence.look()
        except (ApiServerError, OSError):
            fence.interrupted()
        if "sent" not in server.jobs:
            return at - T
    return None


def made(server: Server) -> Fence:
    return Fence(server, AFTER_S, clock=lambda: float(server.clock))  # type: ignore[arg-type]


def test_jobs_end_before_the_manager_starts_them_elsewhere_and_those_of_members_stay() -> None:
    server = Server()
    ended = looked(server, made(server), 900)
    lost_s = int(WORKER_LOST_TIMEOUT.removesuffix("m")) * 60
    # Pods get their grace period, and the manager sees the loss some seconds later.
    assert ended is not None and AFTER_S < ended <= AFTER_S + 10 < lost_s - 240
    assert list(server.jobs) == ["own"]


def test_a_manager_that_renews_ends_nothing() -> None:
    server = Server()
    fence = made(server)
    for minute in range(30):
        server.renewed = T + minute * 60
        assert looked(server, fence, minute * 60 + 55) is None


def test_an_api_server_that_was_down_leaves_time_to_renew() -> None:
    server, fence = Server(), None
    fence = made(server)
    server.up = False
    assert looked(server, fence, 400) is None
    server.up = True
    assert looked(server, fence, 450) is None, "the manager has a minute"
    server.renewed = T + 450
    assert looked(server, fence, 700) is None


def test_a_manager_that_does_not_come_back_ends_jobs_after_that_minute() -> None:
    server = Server()
    fence = made(server)
    server.up = False
    looked(server, fence, 400)
    server.up = True
    ended = looked(server, fence, 900)
    assert ended is not None and 460 <= ended <= 470


def test_a_program_that_starts_counts_from_the_last_renewal() -> None:
    server = Server()
    server.clock = T + 290
    ended = looked(server, made(server), 900)
    assert ended is not None and 350 <= ended <= 360


def test_without_a_lease_time_counts_from_the_start() -> None:
    server = Server()
    server.lease = False
    ended = looked(server, made(server), 900)
    assert ended is not None and AFTER_S < ended <= AFTER_S + 10


@pytest.mark.parametrize(
    ("age_s", "steady_s", "ends"), [(300, 900, False), (301, 59, False), (301, 60, True), (541, 0, True)]
)
def test_the_times(age_s: float, steady_s: float, ends: bool) -> None:
    assert fences(age_s, steady_s, 300) is ends
