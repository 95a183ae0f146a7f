"""How many of the held hours GPUs worked: asked of Prometheus once, and booked once."""

import itertools
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.accounting.attempts import seen
from components.kubernetes.accounting.ledger import Book
from components.kubernetes.accounting.usage import BEHIND_S, OLDEST_S, Usage
from components.kubernetes.programs.prometheus import SilentError
from tests.components.kubernetes.accounting.workloads import GPU, MIDNIGHT, POOL, workload
from tests.components.kubernetes.monitoring.prometheus import running

T = MIDNIGHT + 36_000
PROFILED, UTILIZED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
Share = Callable[[float], float | None]


@dataclass
class Prometheus:
    """Answers ranges of series, which are functions of the time."""

    series: list[tuple[str, Mapping[str, str], Share]] = field(default_factory=list)
    ranges: list[tuple[float, float]] = field(default_factory=list)
    away: bool = False
    url: str = ""

    def answer(self, words: Mapping[str, list[str]]) -> dict[str, Any]:
        begin, end, step = (float(words[key][0]) for key in ("start", "end", "step"))
        self.ranges.append((begin, end))
        times = [begin + index * step for index in range(int((end - begin) // step) + 1)]
        result = [
            {"metric": labels, "values": [[at, str(said)] for at in times if (said := share(at)) is not None]}
            for metric, labels, share in self.series
            if metric in words["query"][0]
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}


@pytest.fixture
def prometheus() -> Iterator[Prometheus]:
    said = Prometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            body = dumps(said.answer(urllib.parse.parse_qs(address.query))).encode()
            self.send_response(503 if said.away or address.path != "/api/v1/query_range" else 200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    said.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield said
    server.shutdown()
    server.server_close()


class Cluster:
    """The API server, as far as it is asked: which pods there are."""

    def __init__(self, **jobs: str) -> None:
        self.jobs = jobs

    def listed(self, path: str) -> tuple[list[dict[str, Any]], str]:
        assert path == "/api/v1/namespaces/team-a/pods"
        label = "batch.kubernetes.io/job-name"
        return [{"metadata": {"name": pod, "labels": {label: job}}} for pod, job in self.jobs.items()], "1"


def of_pod(pod: str, gpu: str, share: float | Share, metric: str = PROFILED) -> tuple[str, Any, Share]:
    labels = {"namespace": "team-a", "pod": pod, "UUID": gpu}
    return metric, labels, share if callable(share) else lambda at: share


def usage(prometheus: Prometheus, cluster: Any, project: str = "llama") -> Usage:
    """One that knows the job `train`."""
    body = workload(admitted=T - 600, labels={"trainstack.dev/project": project})
    body["metadata"]["ownerReferences"] = [{"name": "train"}]
    made, said = Usage(cluster, prometheus.url), seen(body)
    assert said
    made.observe(body, said)
    return made


def total(book: Book) -> tuple[int, int]:
    """Measured and used GPU-seconds."""
    return sum(row.measured_s for row in book.totals()), sum(row.used_s for row in book.totals())


def test_each_gpu_of_a_jobs_pods_is_booked_by_the_share_of_the_time_that_it_worked(
    prometheus: Prometheus,
) -> None:
    prometheus.series = [of_pod("train-0", "A", 0.5), of_pod("train-0", "B", 0.0), of_pod("other", "C", 1.0)]
    book = Book("A", T)
    assert usage(prometheus, Cluster(**{"train-0": "train"})).book({"team-a": book}, T + 600 + BEHIND_S) == {
        "team-a"
    }
    (row,) = book.totals()
    assert (row.day, row.project, row.pool, row.resource) == ("2026-11-25", "llama", POOL, GPU)
    assert (row.measured_s, row.used_s, row.idle_s) == (1200, 300, 900)
    assert Book.parse(book.text()).totals() == book.totals()


def test_no_minute_is_booked_twice_whoever_asks(prometheus: Prometheus) -> None:
    """A collector that is killed begins with the book that was kept."""
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster, book = Cluster(**{"train-0": "train"}), Book("A", T)
    first = usage(prometheus, cluster)
    for now in range(T, T + 1800, 7):
        first.book({"team-a": book}, now)
        if now % 3 == 0:
            first, book = usage(prometheus, cluster), Book.parse(book.text())
    assert total(book) == (book.measured - T, book.measured - T)
    assert book.measured > T + 1200
    # Ranges follow each other: one begins a minute after the end of the one before.
    asked = sorted(set(prometheus.ranges))
    assert all(after[0] == before[1] + 60 for before, after in itertools.pairwise(asked))


def test_what_nobody_measured_is_unknown(prometheus: Prometheus) -> None:
    """An exporter that was away for some minutes; NaN, and what DCGM writes where it has no counter."""
    odd = {60: float("nan"), 120: 9.223372036854776e18}
    gap = of_pod("train-0", "A", lambda at: None if 180 <= at - T < 360 else odd.get(round(at - T), 1.0))
    prometheus.series = [gap]
    book = Book("A", T)
    usage(prometheus, Cluster(**{"train-0": "train"})).book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (300, 300)


def test_a_gpu_without_profiling_counts_by_its_utilization_and_one_with_both_once(
    prometheus: Prometheus,
) -> None:
    prometheus.series = [
        of_pod("train-0", "A", 0.25, UTILIZED),
        of_pod("train-0", "B", 1.0),
        of_pod("train-0", "B", 0.5, UTILIZED),
    ]
    book = Book("A", T)
    usage(prometheus, Cluster(**{"train-0": "train"})).book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (1200, 750)


def test_a_prometheus_that_is_away_is_asked_again_for_the_same(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = Book("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    prometheus.away = True
    with pytest.raises(SilentError):
        asks.book({"team-a": book}, T + 600)
    assert asks.book({"team-a": book}, T + 605) == set(), "not at once"
    prometheus.away = False
    asks.book({"team-a": book}, T + 1200 + BEHIND_S)
    assert total(book) == (1200, 1200)
    # After a day only the last hour is asked for: whose pods those were is not known any more.
    asks.book({"team-a": book}, T + 86_400)
    assert total(book) == (1200 + OLDEST_S, 1200 + OLDEST_S)


def test_a_job_that_is_deleted_has_its_last_minutes(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", lambda at: 1.0 if at <= T + 240 else None)]
    book, asks = Book("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    asks.gone("u1", T + 250)
    asks.book({"team-a": book}, T + 300 + BEHIND_S)
    assert total(book) == (240, 240)
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    asks.book({"team-a": book}, T + 900 + BEHIND_S)
    assert total(book) == (240, 240), "its name may be another's now"


def test_a_clock_that_jumps_books_nothing_twice(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = Book("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    before = total(book)
    assert asks.book({"team-a": book}, T - 3000) == set()
    assert asks.book({"team-a": book}, T + 700) == set()
    assert total(book) == before
    book.measure({}, T + 31 * 86_400)
    asks.book({"team-a": book}, T + 3000 + BEHIND_S)
    assert total(book) == (before[0] + 300, before[1] + 300), "it was a month ahead, and is right again"


def test_without_monitoring_nobody_is_asked_and_nothing_known() -> None:
    book = Book("A", T)
    server: Any = Cluster()
    assert Usage(server, None).book({"team-a": book}, T + 3600) == set()
    assert total(book) == (0, 0)


def test_prometheus_itself_answers_what_is_asked(tmp_path: Path) -> None:
    body = workload(admitted=T, labels={})
    body["metadata"] |= {"namespace": "team-vision", "ownerReferences": [{"name": "train"}]}
    said = seen(body)
    assert said

    class Vision:
        def listed(self, path: str) -> tuple[list[dict[str, Any]], str]:
            labels = {"jobset.sigs.k8s.io/jobset-name": "train"}
            return [{"metadata": {"name": "train-0", "labels": labels}}], "1"

    server: Any = Vision()
    with running(tmp_path) as real:
        asks, now = Usage(server, real.address), int(time.time())
        asks.observe(body, said)
        book = Book("Vision", now - 1200)
        asks.book({"team-vision": book}, now)
    measured, used = total(book)
    assert measured == book.measured - (now - 1200) // 60 * 60
    assert used == pytest.approx(measured * 0.87, abs=1)
