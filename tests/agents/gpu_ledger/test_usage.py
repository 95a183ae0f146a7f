"""Held hours in which GPUs worked: queried once from Prometheus, and booked once."""

import itertools
from typing import Any

import pytest

from agents.gpu_ledger import book_text
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.usage import BEHIND_S, OLDEST_S, GpuUsage
from agents.shared.prometheus import PrometheusError
from tests.agents.gpu_ledger.metering import UTILIZED, Cluster, Prometheus, T, of_pod, total, usage
from tests.agents.gpu_ledger.workloads import GPU, POOL


def test_each_gpu_of_a_jobs_pods_is_booked_by_the_share_of_the_time_that_it_worked(
    prometheus: Prometheus,
) -> None:
    prometheus.series = [of_pod("train-0", "A", 0.5), of_pod("train-0", "B", 0.0), of_pod("other", "C", 1.0)]
    book = TeamBook("A", T)
    assert usage(prometheus, Cluster(**{"train-0": "train"})).book({"team-a": book}, T + 600 + BEHIND_S) == {
        "team-a"
    }
    (row,) = book.totals()
    assert (row.day, row.project, row.pool, row.resource) == ("2026-11-25", "llama", POOL, GPU)
    assert (row.measured_s, row.used_s, row.idle_s) == (1200, 300, 900)
    assert book_text.parse(book_text.text(book)).totals() == book.totals()


def test_no_minute_is_booked_twice_by_concurrent_queries(prometheus: Prometheus) -> None:
    """A collector that is killed begins with the book that was kept."""
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    cluster, book = Cluster(**{"train-0": "train"}), TeamBook("A", T)
    first = usage(prometheus, cluster)
    for now in range(T, T + 1800, 7):
        first.book({"team-a": book}, now)
        if now % 3 == 0:
            first, book = usage(prometheus, cluster), book_text.parse(book_text.text(book))
    assert total(book) == (book.measured - T, book.measured - T)
    assert book.measured > T + 1200
    # Ranges follow each other: one begins a minute after the end of the one before.
    asked = sorted(set(prometheus.ranges))
    assert all(after[0] == before[1] + 60 for before, after in itertools.pairwise(asked))


def test_unmeasured_time_is_unknown(prometheus: Prometheus) -> None:
    """An exporter that was away for some minutes; NaN, and what DCGM writes where it has no counter."""
    odd = {60: float("nan"), 120: 9.223372036854776e18}
    gap = of_pod("train-0", "A", lambda at: None if 180 <= at - T < 360 else odd.get(round(at - T), 1.0))
    prometheus.series = [gap]
    book = TeamBook("A", T)
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
    book = TeamBook("A", T)
    usage(prometheus, Cluster(**{"train-0": "train"})).book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (1200, 750)


def test_a_prometheus_that_is_away_is_asked_again_for_the_same(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    prometheus.away = True
    with pytest.raises(PrometheusError):
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
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    asks.gone("u1", T + 250)
    asks.book({"team-a": book}, T + 300 + BEHIND_S)
    assert total(book) == (240, 240)
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    asks.book({"team-a": book}, T + 900 + BEHIND_S)
    assert total(book) == (240, 240), "its name may be another's now"


def test_a_clock_that_jumps_books_nothing_twice(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    before = total(book)
    assert asks.book({"team-a": book}, T - 3000) == set()
    assert asks.book({"team-a": book}, T + 700) == set()
    assert total(book) == before


@pytest.mark.parametrize("ahead_s", [3000, 31 * 86_400])
def test_a_clock_that_was_ahead_loses_nothing_when_it_is_right_again(
    prometheus: Prometheus, ahead_s: int
) -> None:
    prometheus.series = [of_pod("train-0", "A", lambda at: 1.0 if at <= T + 1800 else None)]
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**{"train-0": "train"}))
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    prometheus.series = [of_pod("train-0", "A", lambda at: 1.0 if at <= T + 660 else None)]
    asks.book({"team-a": book}, T + 780 + ahead_s)
    assert book.measured > T + ahead_s
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    for now in range(T + 800, T + 1800, 60):
        asks.book({"team-a": book}, now)
        book = book_text.parse(book_text.text(book))
    assert total(book) == (book.measured - T, book.measured - T) and book.measured >= T + 1380


def test_without_monitoring_all_is_unknown() -> None:
    book = TeamBook("A", T)
    server: Any = Cluster()
    assert GpuUsage(server, None).book({"team-a": book}, T + 3600) == set()
    assert total(book) == (0, 0)
