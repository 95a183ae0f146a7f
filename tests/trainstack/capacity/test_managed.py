"""Capacity of a stack without a cluster: hours of managed jobs against a training plan."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from infra import stackspec
from infra.errors import Problem, UserError
from infra.jobs.service import JobPhase, JobState, PhaseChange, ServiceJob
from tests.trainstack.capacity.test_reserved import ARN, planned
from tests.trainstack.cli.command import run, run_json
from trainstack.capacity.pools import pools
from trainstack.capacity.reserved import CapacitySegment, ReservedCapacity
from trainstack.cli.jobs import opened
from trainstack.cli.ledgers import sources
from trainstack.ledger.managed import JobPool, months, spans
from trainstack.ledger.periods import TimeSpan

HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
BEGUN = (NOW - 40 * DAY).replace(hour=0)


def job(name: str, start: datetime.datetime, end: datetime.datetime | None, **more: Any) -> ServiceJob:
    """A job on one machine that waited for an hour."""
    changes = [PhaseChange(start - HOUR, JobPhase.WAITING, ""), PhaseChange(start, JobPhase.TRAINING, "")]
    given: dict[str, Any] = {
        "name": name,
        "stack": "small-aws",
        "person": "ada",
        "team": "vision",
        "machine": "ml.p5.48xlarge",
        "nodes": 1,
        "spot": False,
        "reserved": True,
        "state": JobState.COMPLETED if end else JobState.RUNNING,
        "phase": JobPhase.OVER if end else JobPhase.TRAINING,
        "created": start - HOUR,
        "ended": end,
        "max_run_s": 86400,
        "changes": tuple(changes),
        "checkpoint_uri": "s3://checkpoints/a",
    }
    return ServiceJob(**{**given, **more})


def test_time_without_machines_is_not_held() -> None:
    start = NOW - 10 * HOUR
    changes = [
        PhaseChange(start, JobPhase.WAITING, ""),
        PhaseChange(start + HOUR, JobPhase.LOADING, ""),
        PhaseChange(start + 2 * HOUR, JobPhase.TRAINING, ""),
        PhaseChange(start + 3 * HOUR, JobPhase.INTERRUPTED, ""),
        PhaseChange(start + 5 * HOUR, JobPhase.TRAINING, ""),
        PhaseChange(start + 6 * HOUR, JobPhase.OVER, ""),
    ]
    one = job("a", start, start + 6 * HOUR, changes=tuple(changes))
    assert [*spans(one, NOW)] == [
        (start + HOUR, start + 3 * HOUR),
        (start + 5 * HOUR, start + 6 * HOUR),
    ]
    assert [*spans(job("b", start, None), NOW)] == [(start, NOW)]
    waiting = job("c", start, None, changes=(PhaseChange(start, JobPhase.WAITING, ""),))
    assert not [*spans(waiting, NOW)]


def test_hours_and_dollars_of_jobs_by_how_their_machines_were_bought() -> None:
    """A spot job costs the share that was billed; one that chose another way to buy has a line of its own."""
    layout: Any = planned().layout
    start = datetime.datetime(2026, 10, 31, 20, tzinfo=datetime.UTC)
    cheap = {"machine": "ml.g6.xlarge", "reserved": False}
    jobs = [
        job("plan", start, start + 8 * HOUR, nodes=2),
        job("spot", start, start + 8 * HOUR, spot=True, billed_s=300, trained_s=1000, **cheap),
        job("hourly", start, start + 8 * HOUR, team="gone", **cheap),
        job("other", start, start + 8 * HOUR, machine="ml.p4d.24xlarge", reserved=False),
        job("search", start, start + 8 * HOUR, search=True),
    ]
    known = {
        name: JobPool(name, gpus, usd)
        for name, gpus, usd in (("h100", 8, 6.0), ("l4", 1, 1.0), ("l4 (on_demand)", 1, None))
    }
    found = months(layout.machines, known, jobs, "2026-11", now=NOW, teams=["vision", "language"])
    rows = {(one.team, line.row.pool): line for one in found for line in one.lines}
    assert {one.team for one in found} == {"vision", "language", "gone"}
    # Four hours of each are in November.
    plan, spot = rows["vision", "h100"], rows["vision", "l4"]
    assert (plan.held_hours, plan.usd) == (4 * 2 * 8, 4 * 2 * 8 * 6.0)
    assert spot.held_hours == 4 and spot.usd == pytest.approx(4 * 0.3)
    assert rows["gone", "l4 (on_demand)"].usd is None and len(rows) == 3


def plan(nodes: int = 2) -> ReservedCapacity:
    """A plan of 60 days, which began 40 days ago, at $5 a GPU-hour."""
    fee = nodes * 8 * 24 * 60 * 5.0
    part = CapacitySegment(TimeSpan(BEGUN, BEGUN + 60 * DAY), nodes)
    return ReservedCapacity(ARN, "Active", "ml.p5.48xlarge", (part,), fee_usd=fee)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """small-aws with a plan, whose service has these jobs."""
    known = SimpleNamespace(jobs=[], answers=[plan()], unseen=0)

    @contextmanager
    def door(name: str, *, rehearse: bool) -> Iterator[Any]:
        assert name == "small-aws" and not rehearse
        service = SimpleNamespace(jobs=lambda since: iter(known.jobs), unseen=known.unseen)
        yield SimpleNamespace(service=service)

    monkeypatch.setattr(opened, "opened", door)
    monkeypatch.setattr(stackspec, "load_file", lambda _: SimpleNamespace(spec=planned()))
    services = SimpleNamespace(reservations=lambda _: iter(known.answers))
    monkeypatch.setattr(sources, "services_of", lambda _: services)
    return known


def test_jobs_are_compared_with_a_plan_from_its_start(stack: SimpleNamespace) -> None:
    """One of two machines was held for ten days; the plan began before its first job."""
    start = BEGUN + 20 * DAY
    stack.jobs = [
        job("late", NOW - 2 * HOUR, None, max_run_s=40 * 86400),
        job("held", start, start + 10 * DAY),
    ]
    code, found = run_json("capacity", "-s", "small-aws")
    assert code == 0 and found["ledger_end"]
    (term,) = found["commitments"]
    paid = (NOW - BEGUN) / HOUR * 2 * 8
    assert term["kind"] == "training_plan" and term["committed_hours"] == pytest.approx(paid, rel=0.01)
    assert term["held_hours"] == pytest.approx((240 + 2) * 8, rel=0.01)
    assert term["unused_usd"] == pytest.approx(term["unused_hours"] * 5.0)
    (end,) = found["endings"]
    assert [one["name"] for one in end["over"]] == ["late"] and end["over"][0]["checkpoints"]
    assert found["resumable_share"] == 1.0 and [one["jobs"] for one in found["queue"]] == [0]
    rows = [one for one in found["months"] if one["class"] == "ml.p5.48xlarge"]
    assert sum(one["committed_hours"] for one in rows) == pytest.approx(term["committed_hours"])
    assert sum(one["idle_usd"] for one in rows) == pytest.approx(term["unused_usd"])
    code, text = run("capacity", "-s", "small-aws")
    assert code == 0 and "late (vision, 8 GPUs)" in text


def test_a_plan_without_jobs_is_idle_and_one_that_cannot_be_read_is_reported_last(
    stack: SimpleNamespace,
) -> None:
    code, found = run_json("capacity", "-s", "small-aws")
    assert code == 0 and found["commitments"][0]["held_hours"] == 0
    denied = Problem("layout.machines[0].purchase", ARN, "no", "Allow it.", code="reservation-not-readable")
    stack.answers, stack.unseen = [denied], 3
    with pytest.raises(UserError) as caught:
        run("capacity", "-s", "small-aws")
    assert [code for code, _ in caught.value.codes] == ["reservation-not-readable", "ledger-empty"]
    stack.jobs = [job("a", NOW - DAY, None)]
    with pytest.raises(UserError) as caught:
        run("capacity", "-s", "small-aws")
    assert [code for code, _ in caught.value.codes] == ["reservation-not-readable"]


def test_without_the_cloud_a_plan_has_the_machines_of_its_largest_job() -> None:
    one, *_ = pools(planned(), NOW.date())
    assert (one.nodes, one.period, one.rates["own"]) == (2, TimeSpan(None, None), None)
