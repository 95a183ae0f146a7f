"""A cluster whose token source or API server does not respond delays no other, and not the dispatcher."""

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from agents.clusters.controller import Dispatcher, run
from agents.clusters.dispatch import CLUSTER_LABEL
from agents.clusters.leases import LeaseRenewer
from agents.clusters.nominating import ApplyingServer
from agents.clusters.renewing import Renewer
from agents.clusters.workers import Worker, WorkerApi

BLOCKED = [f"west-{number}" for number in range(4)]
NAMES = [*BLOCKED, "east"]
WORKERS = [Worker(name, f"https://{name}", "", "n", "") for name in NAMES]
PATIENCE_S = 20.0
"""Most seconds that a test waits for something that takes milliseconds."""


class Server(ApplyingServer):
    """The manager's: Kueue is connected to all clusters, and there are no Workloads."""

    def __init__(self) -> None:
        self.patched: list[str] = []

    def ask(self, method: str, path: str, body: Any = None, **_: Any) -> tuple[int, dict[str, Any]]:
        return 200, {}

    def every(self, path: str, **selectors: str) -> Iterator[dict[str, Any]]:
        for name in NAMES:
            rows = [{"type": "Active", "status": "True"}]
            spec = {"nodeLabels": {CLUSTER_LABEL: name}}
            yield {"metadata": {"name": name}, "status": {"conditions": rows}, "spec": spec}

    def must(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        self.patched.append(path.rpartition("/")[2])
        return {}

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[Sequence[Any], str]]:
        yield (), "1"

    def watched(self, path: str, version: str, seconds: float, **selectors: str) -> Iterator[Any]:
        return iter(())


class Clusters:
    """API servers of which those in `BLOCKED` respond to nothing until the end."""

    def __init__(self) -> None:
        self.end, self.leased = threading.Event(), threading.Event()

    def token(self, worker: Worker, lasts_s: int) -> str:
        """A source of tokens that never responds for them."""
        self.block(worker.name)
        return "token"

    def send(self, name: str) -> None:
        self.block(name)
        self.leased.set()

    def block(self, name: str) -> None:
        if name in BLOCKED:
            self.end.wait()
            raise TimeoutError


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    made = Clusters()

    def send(self: WorkerApi, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        made.send(self.worker.name)
        return {}

    monkeypatch.setattr(WorkerApi, "send", send)
    yield made
    made.end.set()


@contextmanager
def running(
    clusters: Clusters, dispatcher: Dispatcher, renewer: Renewer, leases: LeaseRenewer
) -> Iterator[threading.Event]:
    """The program in a thread; the event is set after its third cycle."""
    stop, third, cycles = threading.Event(), threading.Event(), itertools.count(1)

    def beat() -> None:
        if next(cycles) == 3:
            third.set()
        stop.wait(0.001)

    thread = threading.Thread(
        target=run,
        args=(dispatcher, renewer, leases, beat),
        kwargs={"stop": stop, "pause_s": 0.001},
        daemon=True,
    )
    thread.start()
    try:
        yield third
    finally:
        stop.set()
        clusters.end.set()
        thread.join(PATIENCE_S)


def test_blocked_sources_of_tokens_delay_neither_leases_of_others_nor_jobs(clusters: Clusters) -> None:
    server = Server()
    renewer = Renewer(server, WORKERS, token=clusters.token)
    with running(clusters, Dispatcher(server), renewer, LeaseRenewer(WORKERS, renewer.tokens)) as third:
        assert clusters.leased.wait(PATIENCE_S), "the healthy cluster has a token and its Lease"
        assert third.wait(PATIENCE_S), "the dispatcher goes on"
        assert server.patched == []


def test_blocked_api_servers_delay_neither_leases_of_others_nor_jobs(clusters: Clusters) -> None:
    server, tokens = Server(), dict.fromkeys(NAMES, "token")
    renewer = Renewer(server, [], token=clusters.token)
    with running(clusters, Dispatcher(server), renewer, LeaseRenewer(WORKERS, tokens)) as third:
        assert clusters.leased.wait(PATIENCE_S)
        assert third.wait(PATIENCE_S)
