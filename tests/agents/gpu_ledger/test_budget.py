"""Jobs that start inside a budget, and the reasons for those that do not."""

from typing import Any

import pytest

from agents.gpu_ledger.attempts import month_end
from agents.gpu_ledger.budget import Exemption, GpuBudget, JobRequest, judge, uses
from agents.gpu_ledger.ledger import TeamBook
from tests.agents.gpu_ledger.cluster import Cluster, metric
from tests.agents.gpu_ledger.workloads import GPU, MIDNIGHT, POOL, said, workload

NOW = MIDNIGHT
PRICES = {POOL: {GPU: 4.0}}
HOURS = GpuBudget(usd=None, gpu_hours=10, stop=True)
DOLLARS = GpuBudget(usd=40, gpu_hours=None, stop=True)


def asked(hours: float | None, gpus: int = 8, **more: Any) -> JobRequest:
    seconds = None if hours is None else round(hours * 3600)
    return JobRequest(
        **{"job": "a", "priority": "default", "shares": {(POOL, GPU): gpus}, "left_s": seconds, **more}
    )


def used(hours: float, *, limit: int | None = None, goes_on: bool = False) -> TeamBook:
    """A book with a job of one GPU that ran for so many hours, and maybe goes on."""
    book = TeamBook("A", NOW)
    start = NOW - round(hours * 3600)
    end = None if goes_on else NOW
    book.observe(said(admitted=start, gpus=1, limit=limit, finished=end), NOW, watched=True)
    return book


def starts(
    asked: JobRequest, budget: GpuBudget, book: TeamBook, prices: Any = PRICES, promised: Any = ()
) -> tuple[bool, str]:
    verdict = judge(asked, budget, uses(budget, book, promised, prices, NOW), prices, NOW)
    return verdict.starts, verdict.why


@pytest.mark.parametrize("budget", [HOURS, DOLLARS])
def test_what_can_end_inside_the_rest_starts(budget: GpuBudget) -> None:
    assert starts(asked(1), budget, used(2))[0]
    held, why = starts(asked(1.01), budget, used(2))
    assert not held and "2026-12-01T00:00:00Z" in why


def test_what_running_jobs_may_still_take_is_not_given_away() -> None:
    book = used(1, limit=5 * 3600, goes_on=True)  # 1 hour is used, 4 more may be
    assert starts(asked(5, gpus=1), HOURS, book)[0]
    assert not starts(asked(5.1, gpus=1), HOURS, book)[0]
    # Nor what was let in a moment ago.
    assert not starts(asked(5, gpus=1), HOURS, book, promised=[asked(1, gpus=1)])[0]


def test_without_a_time_limit_a_job_starts_while_anything_is_left() -> None:
    assert starts(asked(None), HOURS, used(9.9))[0]
    held, why = starts(asked(None), HOURS, used(10))
    assert not held and "time limit" in why and "max-exec-time-seconds" in why


def test_of_a_budget_of_0_nothing_starts_and_what_asks_for_no_gpu_does() -> None:
    nothing = GpuBudget(usd=0, gpu_hours=None, stop=True)
    assert not starts(asked(1), nothing, used(0))[0]
    assert not starts(asked(None), nothing, used(0))[0]
    assert starts(asked(1, shares={}), nothing, used(0))[0]


def test_an_unknown_price_is_no_price_of_0() -> None:
    book, unpriced = used(2), uses(DOLLARS, used(2), [], {}, NOW)
    assert unpriced[0].unpriced == {POOL} and unpriced[0].used == 0
    started, why = starts(asked(1000), DOLLARS, book, prices={})
    assert started and "of a100" in why
    full = GpuBudget(usd=0, gpu_hours=None, stop=True)
    assert "without a price" in starts(asked(1), full, book, prices={})[1]


def test_only_the_part_inside_the_month_counts() -> None:
    late = month_end(NOW) - 3600
    book = TeamBook("A", late)
    verdict = judge(asked(100), HOURS, uses(HOURS, book, [], PRICES, late), PRICES, late)
    assert verdict.starts  # 8 GPU-hours until the month ends


def test_both_limits_hold() -> None:
    both = GpuBudget(usd=40, gpu_hours=5, stop=True)
    assert not starts(asked(0.7), both, used(0))[0]
    assert starts(asked(0.6), both, used(0))[0]


@pytest.mark.parametrize(
    ("kind", "name", "last_day", "exempt"),
    [
        ("job", "a", "never", True),
        ("job", "b", "never", False),
        ("priority", "default", "2026-11-25", True),
        ("priority", "default", "2026-11-24", False),
    ],
)
def test_exempt_jobs_start_and_it_is_said_who_decided(
    kind: str, name: str, last_day: str, exempt: bool
) -> None:
    row = Exemption(kind, name, "deadline", "lead@example.com", last_day)
    budget = GpuBudget(usd=None, gpu_hours=1, stop=True, exempt=[row])
    found, why = starts(asked(5), budget, used(0))
    assert found == exempt
    assert ("lead@example.com: deadline" in why) == exempt


def test_hours_of_a_pool_that_is_removed_stay_in_the_budget_of_the_month() -> None:
    cluster = Cluster()
    cluster.terms = {"prices": {POOL: {GPU: 3.0}, "l4": {GPU: 1.0}}}
    cluster.put(workload(admitted=MIDNIGHT, finished=MIDNIGHT + 3600, gpus=8))
    cluster.clock = MIDNIGHT + 4000
    before = metric(cluster.run(cluster.collector(usd=48)), "trainstack_budget_used_ratio", budget="usd")
    assert before == pytest.approx(0.5)
    # The pool is gone, and its price with it; then the collector is killed once more.
    cluster.terms = {"prices": {"l4": {GPU: 1.0}}}
    for _ in range(2):
        made = cluster.run(cluster.collector(usd=48))
        assert metric(made, "trainstack_budget_used_ratio", budget="usd") == before
    assert cluster.book().terms["prices"] == {POOL: {GPU: 3.0}, "l4": {GPU: 1.0}}
    # A pool of that name has the price of now.
    cluster.terms = {"prices": {POOL: {GPU: 6.0}}}
    made = cluster.run(cluster.collector(usd=48))
    assert metric(made, "trainstack_budget_used_ratio", budget="usd") == pytest.approx(1)
