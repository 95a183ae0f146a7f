"""The collector: held hours are booked without Prometheus too, and figures once, after any crash."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from agents.gpu_ledger import book_text, books, collector
from agents.gpu_ledger.book_store import text_of
from agents.gpu_ledger.collector import Collector
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.usage import BEHIND_S, OLDEST_S
from agents.queued_jobs.reasons import RETRYABLE
from agents.shared.api_server import ApiServerError
from agents.shared.jobs import path
from tests.agents.gpu_ledger.metering import Prometheus, T, of_pod, total
from tests.agents.gpu_ledger.workloads import workload

PODS, CONFIG_MAPS = "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/configmaps"


class StopError(Exception):
    """The collector is killed."""


JOBS = [path(kind) for kind in RETRYABLE]


class Cluster:
    """An API server with one job on one GPU, which keeps the book."""

    def __init__(self) -> None:
        self.clock = T
        self.book: dict[str, Any] | None = None
        self.forbids_pods = self.fails = False
        self.job = workload(admitted=T, gpus=1)
        self.job["metadata"] |= {
            "resourceVersion": "1",
            "ownerReferences": [{"kind": "Job", "name": "train"}],
        }

    def now(self) -> int:
        return self.clock

    def version(self, path: str) -> str:
        return "1"

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[list[Any], str]]:
        if path.endswith("/namespaces/team-a/workloads"):
            yield [self.job], "1"
            return
        if path != PODS:
            assert path in JOBS
            yield [], "1"
            return
        if self.forbids_pods:
            raise ApiServerError(403, "pods is forbidden")
        labels = {"batch.kubernetes.io/job-name": "train"}
        yield [{"metadata": {"name": "train-0", "labels": labels}}], "1"

    def every(self, path: str, **selectors: str) -> Iterator[Any]:
        for page, _ in self.paged(path, **selectors):
            yield from page

    def watched(self, path: str, version: str, seconds: float) -> Iterator[Any]:
        if path not in JOBS:
            yield {"type": "MODIFIED", "object": self.job}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        if method == "POST":
            return 201, {}  # an empty archive
        assert (method, path) == ("GET", f"{CONFIG_MAPS}/gpu-ledger")
        return (404, {}) if self.book is None else (200, self.book)

    def must(self, method: str, path: str, body: Any = None) -> Mapping[str, Any]:
        assert path.startswith(CONFIG_MAPS)
        if self.fails:
            raise OSError("connection reset")
        version = 1 + int(self.book["metadata"]["resourceVersion"]) if self.book else 1
        self.book = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}
        return self.book

    def kept(self) -> TeamBook:
        """The book as it lies in the cluster."""
        assert self.book
        return book_text.parse(text_of(self.book))


@contextmanager
def clocked(clock: Callable[[], float]) -> Iterator[None]:
    """The collector's own clock is this one."""
    made = SimpleNamespace(monotonic=clock, time=clock, sleep=lambda _: None)
    with pytest.MonkeyPatch.context() as patched:
        for module in (books, collector):
            patched.setattr(module, "time", made)
        yield


def run(cluster: Cluster, prometheus: str | None, until: int) -> Collector:
    """A collector that comes around once a minute until then, and is killed."""
    server: Any = cluster
    said: list[str] = []
    config = {"teams": {"team-a": "A"}, "budgets": {}, "prices": {}, "prometheus": prometheus}
    made = Collector(server, config, said.append)

    def beat() -> None:
        if cluster.clock >= until:
            raise StopError
        cluster.clock += 60

    with clocked(lambda: float(cluster.clock)), pytest.raises(StopError):
        made.run(beat)
    assert all("503" in text or "forbidden" in text for text in said)
    return made


def metric(made: Collector, name: str) -> dict[str, float]:
    """Values by labels."""
    lines = [line for line in made.text.splitlines() if line.startswith(name)]
    return {line[len(name) : line.rindex(" ")]: float(line[line.rindex(" ") :]) for line in lines}


def test_while_prometheus_is_away_hours_are_held_and_figures_come_later(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 0.5)]
    prometheus.away = True
    cluster = Cluster()
    made = run(cluster, prometheus.url, T + 1800)
    (row,) = cluster.kept().totals()
    assert row.held_s >= 1680 and (row.measured_s, row.used_s) == (0, 0)
    unknown = metric(made, "trainstack_gpu_unknown_hours")
    assert unknown == {'{team="A",project="none",pool="a100"}': pytest.approx(0.5, abs=0.03)}
    assert metric(made, "trainstack_ledger_measured_timestamp_seconds") == {'{team="A"}': T + 60}
    prometheus.away = False
    made = run(cluster, prometheus.url, T + 2400)
    book = cluster.kept()
    # All of it, also what was before this collector.
    assert total(book) == (book.measured - (T + 60), (book.measured - (T + 60)) / 2)
    assert book.measured >= T + 2400 - BEHIND_S - 300
    assert metric(made, "trainstack_gpu_use_hours_total")[
        '{team="A",project="none",pool="a100",state="idle"}'
    ] == pytest.approx(total(book)[1] / 3600)


def test_after_more_than_an_hour_what_is_older_stays_unknown(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster = Cluster()
    run(cluster, None, T + 7200)
    run(cluster, prometheus.url, T + 7200 + 120)
    (row,) = cluster.kept().totals()
    assert row.held_s > 7000 and row.measured_s == row.used_s == OLDEST_S
    assert row.unknown_s == row.held_s - OLDEST_S and row.idle_s == 0


def test_collectors_that_are_killed_all_the_time_book_each_minute_once(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster = Cluster()
    for until in range(T + 60, T + 3600, 180):
        run(cluster, prometheus.url, until)
    book = cluster.kept()
    assert total(book) == (book.measured - (T + 60),) * 2
    assert book.measured > T + 2700


def test_who_may_not_list_pods_still_books_what_is_held(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster = Cluster()
    cluster.forbids_pods = True
    run(cluster, prometheus.url, T + 1800)
    (row,) = cluster.kept().totals()
    assert row.held_s >= 1680 and row.measured_s == 0


def test_a_book_of_before_figures_is_read(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster = Cluster()
    run(cluster, None, T + 600)
    assert cluster.book
    text = text_of(cluster.book)
    for name in ('"uses":[],', f'"measured":{T + 60},', '"figured":0,'):
        assert name in text
        text = text.replace(name, "")
    cluster.book["data"] = {"book.json": text}
    del cluster.book["binaryData"]
    run(cluster, prometheus.url, T + 1800)
    book = cluster.kept()
    # From where the book was complete; what was before has no figures.
    assert 900 <= total(book)[0] <= book.measured - (T + 480)


class Many(Cluster):
    """A cluster with pages of finished jobs, which counts the bodies that are still referenced."""

    PAGES, PAGE = 20, 50

    class Body(dict[str, Any]):
        """One that can be counted."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = self.most = 0
        self.listed = False

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Mapping[str, Any]]:
        return (200, {}) if path.endswith("admissionchecks/gpu-budget/status") else super().ask(method, path)

    def watched(self, path: str, version: str, seconds: float) -> Iterator[Any]:
        if path in JOBS:
            return iter(())
        assert version == "1"
        if self.listed:
            raise StopError
        self.listed = True
        return iter(())

    def paged(self, path: str, **selectors: str) -> Iterator[tuple[list[Any], str]]:
        self.clock = T + 900
        if path in JOBS:
            yield [], "7"
            return
        for page in range(self.PAGES):
            yield [self._body(path, page * self.PAGE + index) for index in range(self.PAGE)], "7"

    def _body(self, path: str, index: int) -> Any:
        labels = {"batch.kubernetes.io/job-name": f"train-{index}"}
        made = self.Body({"metadata": {"name": f"train-{index}-0", "labels": labels}})
        if path != PODS:
            made = self.Body(workload(f"u{index}", admitted=T, finished=T + 60, gpus=1))
            made["metadata"] |= {"resourceVersion": "1", "ownerReferences": [{"name": f"train-{index}"}]}
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(made, self._freed)
        return made

    def _freed(self) -> None:
        self.alive -= 1


@pytest.mark.parametrize("stop", [False, True])
def test_of_finished_jobs_no_more_than_three_pages_are_in_memory(prometheus: Prometheus, stop: bool) -> None:
    """A team may have 20,000 of them; whole, they are more than the memory of the pod."""
    cluster = Many()
    server: Any = cluster
    budget: dict[str, Any] = {"usd": None, "gpu_hours": 1e6, "stop": stop, "exempt": []}
    config = {"teams": {"team-a": "A"}, "budgets": {"team-a": budget}, "prices": {}}
    made = Collector(server, {**config, "prometheus": prometheus.url}, lambda _: None)
    with pytest.raises(StopError):
        made.run(lambda: None)
    assert prometheus.ranges, "it has looked at all pods, too"
    (row,) = cluster.kept().totals()
    assert row.held_s == 60 * Many.PAGES * Many.PAGE
    # The last one of Workloads, and two of pods: one that was looked at, and the next.
    assert Many.PAGE <= cluster.most <= 3 * Many.PAGE


def test_what_was_noted_when_the_api_server_went_away_is_kept_once_it_is_back() -> None:
    cluster = Cluster()
    server: Any = cluster
    config = {"teams": {"team-a": "A"}, "budgets": {}, "prices": {}, "prometheus": None}
    made = Collector(server, config, lambda _: None)
    steady = [0.0]
    with clocked(lambda: steady[0]):
        made.load()
        made.settle()
        cluster.clock += 7200
        steady[0] += 20
        cluster.fails = True
        with pytest.raises(OSError, match="connection reset"):
            made.settle()
        cluster.fails = False
        steady[0] += 60
        cluster.clock += 60
        made.settle()
    assert [note.what for note in cluster.kept().notes] == ["clock"]
