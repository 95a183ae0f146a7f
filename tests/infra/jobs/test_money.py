"""Maximum cost of a run, spending, and budgets that refuse it."""

import datetime
from dataclasses import replace

import pytest

from infra.jobs import money
from infra.jobs.service import JobPhase, JobState
from tests.infra.jobs.samples import NOW, OUTPUTS, job, order

PRICES = money.prices(OUTPUTS.machines)


def test_the_price_is_machines_times_hours_times_the_price_of_one() -> None:
    assert money.price(order(nodes=2)).usd == pytest.approx(2 * 2 * 1.127)
    assert "$4.51 (2 x" in str(money.price(order(nodes=2)))
    assert money.price(order(spot=False, keep_warm_minutes=30)).usd == pytest.approx(2.5 * 1.127)
    assert money.price(order(machine="b200")).usd is None
    assert "unknown" in str(money.price(order(machine="b200")))


def test_a_job_costs_what_is_billed_of_each_machine() -> None:
    assert money.cost(job(nodes=2, billed_s=1800), PRICES) == pytest.approx(1.127)
    assert money.cost(job(billed_s=1800, warm_s=1800), PRICES) == pytest.approx(1.127)
    assert money.cost(job(billed_s=None), PRICES) == 0
    fee = {("ml.g6.xlarge", True): 0.1}
    assert money.cost(job(reserved=True, billed_s=3600), fee) == pytest.approx(0.1)
    assert money.cost(job(), fee) is None
    assert money.cost(job(machine="ml.p6-b200.48xlarge"), PRICES) is None


def test_what_runs_counts_with_all_that_it_may_take() -> None:
    running = job(state=JobState.RUNNING, phase=JobPhase.TRAINING, ended=None, billed_s=None, nodes=2)
    found = money.spent([job(), running], PRICES, money.month_of(NOW))
    assert found.usd == pytest.approx(1.127) and found.running_usd == pytest.approx(4 * 1.127)
    assert found.total == pytest.approx(5 * 1.127)


def test_a_job_counts_in_the_month_in_which_it_ended() -> None:
    october = NOW.replace(month=10, day=31)
    begun_before = job(created=october)
    over_before = job(created=october, ended=october)
    assert money.month_of(NOW) == datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
    assert money.spent([begun_before, over_before], PRICES, money.month_of(NOW)).usd == pytest.approx(1.127)


def test_jobs_without_a_price_are_reported_and_not_free() -> None:
    found = money.spent([job(machine="ml.p6-b200.48xlarge")], PRICES, money.month_of(NOW))
    assert (found.total, found.unknown) == (0, 1)
    rooms = list(money.rooms(order(), [job(machine="ml.p6-b200.48xlarge")], NOW))
    assert "1 jobs" in str(rooms[0])


def test_each_budget_counts_its_own_jobs() -> None:
    jobs = [job(), job(person="eve"), job(person="bob", team="nlp")]
    found = {room.budget.scope: room.spent.usd / 1.127 for room in money.rooms(order(), jobs, NOW)}
    assert found == pytest.approx({"stack": 3, "team": 2, "person": 1})


def test_a_budget_that_stops_refuses_what_could_break_it() -> None:
    jobs = [job(billed_s=3600 * 87)]  # $98.05 of $100
    (reported,) = money.broken(money.rooms(order(), jobs, NOW))
    assert "person ada" in reported.rule and "$98.05 of $100.00" in reported.rule
    assert list(money.broken(money.rooms(order(max_hours=1.5), jobs, NOW))) == []


def test_a_budget_that_warns_lets_it_run_and_says_so() -> None:
    jobs = [job(person="eve", billed_s=3600 * 900)]
    found = list(money.rooms(order(), jobs, NOW))
    assert [room.who for room in found if room.broken] == ["team Vision Lab"]
    assert list(money.broken(found)) == []


def test_the_run_at_the_very_limit_fits() -> None:
    exact = OUTPUTS.model_copy(
        update={"budgets": (OUTPUTS.budgets[2].model_copy(update={"monthly_usd": 2 * 1.127}),)}
    )
    asked = order()
    assert [room.broken for room in money.rooms(replace(asked, outputs=exact), [], NOW)] == [False]
