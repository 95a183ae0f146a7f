"""Activity of GPUs counts only while a job held them: used hours never exceed held hours."""

from collections.abc import Sequence
from typing import Any

import pytest

from agents.gpu_ledger.attempts import seen
from agents.gpu_ledger.ledger import TeamBook
from agents.gpu_ledger.usage import BEHIND_S, GpuUsage
from tests.agents.gpu_ledger.metering import PROFILED, Cluster, Prometheus, T, of_pod, total, usage
from tests.agents.gpu_ledger.workloads import workload

TRAIN = {"train-0": "train"}


def observe(asks: GpuUsage, book: TeamBook, **said: Any) -> None:
    """The ledger sees a state of the job `train`."""
    body = workload(**said)
    body["metadata"]["ownerReferences"] = [{"name": "train"}]
    what = seen(body)
    assert what
    asks.observe(body, what)
    book.observe(what, T, watched=True)


def asked(
    prometheus: Prometheus, states: Sequence[dict[str, Any]], until: int = T + 600
) -> tuple[int, int, int]:
    """Held, measured and used GPU-seconds."""
    book, asks = TeamBook("A", T - 600), GpuUsage(Cluster(**TRAIN), prometheus.url)  # type: ignore[arg-type]
    for state in states:
        observe(asks, book, **state)
    book.seen = until
    asks.book({"team-a": book}, until + BEHIND_S)
    return sum(row.held_s for row in book.totals()), *total(book)


def test_of_a_job_that_lasted_half_a_minute_half_a_minute_counts(prometheus: Prometheus) -> None:
    prometheus.series = [
        of_pod("train-0", str(gpu), lambda at: 1.0 if at == T + 60 else None) for gpu in range(8)
    ]
    lasted = {"admitted": T + 10, "finished": T + 40}
    assert asked(prometheus, [lasted]) == (8 * 30, 8 * 30, 8 * 30)


def test_pods_that_outlive_their_quota_count_no_more(prometheus: Prometheus) -> None:
    """Evicted after 90 s, and let in again 130 s later; its pods took a while to end."""
    prometheus.series = [of_pod("train-0", str(gpu), 0.5) for gpu in range(8)]
    states: list[dict[str, Any]] = [
        {"admitted": T},
        {"released": T + 90, "past": 90},
        {"admitted": T + 220, "past": 90},
    ]
    held_s = 90 + 600 - 220
    assert asked(prometheus, states) == (8 * held_s, 8 * held_s, 4 * held_s)


def test_a_pod_that_moved_to_another_node_has_one_gpu_at_a_time(prometheus: Prometheus) -> None:
    """The old node's figures go on for a while beside those of the new one."""
    prometheus.series = [
        of_pod("train-0", "old", lambda at: 0.0 if at <= T + 240 else None),
        of_pod("train-0", "new", lambda at: 1.0 if at > T + 120 else None),
    ]
    assert asked(prometheus, [{"admitted": T, "gpus": 1}]) == (600, 600, 60 + 360)


def test_an_exporter_that_began_anew_is_a_gap_and_no_second_gpu(prometheus: Prometheus) -> None:
    """Its pod has another address, so its series are others, of the same GPUs."""

    def series(address: str, begin: int, end: int) -> Any:
        labels = {"namespace": "team-a", "pod": "train-0", "UUID": "A", "instance": address}
        return PROFILED, labels, lambda at: 1.0 if begin < at <= end else None

    prometheus.series = [series("10.0.0.1:9400", T, T + 240), series("10.0.0.2:9400", T + 180, T + 600)]
    assert asked(prometheus, [{"admitted": T, "gpus": 1}]) == (600, 600, 600)
    prometheus.series = [series("10.0.0.1:9400", T, T + 180), series("10.0.0.2:9400", T + 360, T + 600)]
    assert asked(prometheus, [{"admitted": T, "gpus": 1}]) == (600, 420, 420)


def test_pods_that_were_deleted_since_the_last_time_keep_their_figures(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", lambda at: 1.0 if at <= T + 540 else None)]
    cluster, book = Cluster(**TRAIN), TeamBook("A", T)
    asks = usage(prometheus, cluster)
    asks.book({"team-a": book}, T + 300 + BEHIND_S)
    cluster.jobs = {}
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (540, 540)


def test_a_job_that_was_deleted_unseen_ends_when_it_was_seen_last(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**TRAIN))
    asks.only("team-a", {"u1"}, T + 60)
    asks.only("team-b", set(), T + 60)
    asks.only("team-a", set(), T + 200)
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (200, 200)


def test_a_job_on_several_pools_is_unknown(prometheus: Prometheus) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    body = workload(admitted=T, pods=2)
    (first,) = body["status"]["admission"]["podSetAssignments"]
    second = {**first, "name": "other", "flavors": dict.fromkeys(first["flavors"], "h100")}
    body["status"]["admission"]["podSetAssignments"] = [first, second]
    body["metadata"]["ownerReferences"] = [{"name": "train"}]
    said, book = seen(body), TeamBook("A", T)
    assert said
    asks = GpuUsage(Cluster(**TRAIN), prometheus.url)  # type: ignore[arg-type]
    asks.observe(body, said)
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    assert total(book) == (0, 0) and book.measured == T + 600


@pytest.mark.parametrize("back_s", [3000, 2 * 86_400])
def test_a_clock_that_goes_back_for_a_while_books_nothing_twice(prometheus: Prometheus, back_s: int) -> None:
    prometheus.series = [of_pod("train-0", "A", 1.0)]
    book, asks = TeamBook("A", T), usage(prometheus, Cluster(**TRAIN))
    asks.book({"team-a": book}, T + 600 + BEHIND_S)
    for later in range(0, 900, 50):
        asks.book({"team-a": book}, T + 700 - back_s + later)
    assert total(book) == (600, 600)
    asks.book({"team-a": book}, T + 1200 + BEHIND_S)
    assert total(book) == (1200, 1200)
