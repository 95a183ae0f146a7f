"""Jobs that a closing pool admits, and those that it deactivates."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.capacity_windows.verdicts import LONGEST, START, RunLimits, admit, keep, run_limits
from agents.capacity_windows.windows import Period
from components.kubernetes.queueing.kueue_values import PODS_READY_TIMEOUT

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
_H = timedelta(hours=1)
CLOSES = NOON + 4 * _H
OPEN = Period(NOON - 10 * _H, CLOSES)
lengths = st.none() | st.timedeltas(timedelta(minutes=1), timedelta(days=10))


def run(limit: timedelta | None = None, interval: timedelta | None = None) -> RunLimits:
    return RunLimits(limit, interval, "default")


@pytest.mark.parametrize(
    ("job", "welcome"),
    [
        (run(limit=4 * _H), True),
        (run(limit=4 * _H + timedelta(seconds=1)), False),
        (run(interval=_H), True),
        # It would be stopped before its first checkpoint.
        (run(interval=4 * _H), False),
        (run(limit=9 * _H, interval=_H), True),
        (run(), False),
    ],
)
def test_a_job_starts_if_it_ends_in_time_or_checkpoints(job: RunLimits, welcome: bool) -> None:
    assert admit(job, OPEN, NOON).welcome is welcome


def test_a_deactivated_job_has_a_reason_and_is_evaluated_again_soon() -> None:
    soon = admit(run(limit=_H), Period(NOON + timedelta(minutes=5), NOON + 9 * _H), NOON)
    assert soon.again == timedelta(minutes=5) and "2026-12-01 12:05 UTC" in soon.words
    later = admit(run(limit=_H), Period(NOON + 99 * _H, NOON + 199 * _H), NOON)
    over = admit(run(limit=_H), None, NOON)
    assert later.again == over.again == LONGEST and "ended" in over.words
    silent = admit(run(), OPEN, NOON)
    assert "max-exec-time-seconds" in silent.words and "checkpoint-minutes" in silent.words
    assert "9 h 00" in admit(run(limit=9 * _H), OPEN, NOON).words


def test_a_job_that_runs_is_stopped_when_its_pool_closes() -> None:
    assert keep(OPEN, CLOSES - timedelta(seconds=1)) is None and keep(Period(NOON, None), NOON) is None
    ended = keep(None, CLOSES)
    closed = keep(Period(NOON + 9 * _H, NOON + 19 * _H), NOON)
    assert ended and not ended.welcome
    assert closed and not closed.welcome and closed.again == LONGEST and "opens at" in closed.words


def test_a_job_that_nothing_holds_needs_to_say_nothing() -> None:
    assert admit(run(), Period(NOON, None), NOON).welcome


@given(lengths, lengths, st.timedeltas(-2 * _H, 20 * _H))
def test_nothing_starts_that_would_lose_all_its_work(
    limit: timedelta | None, interval: timedelta | None, since: timedelta
) -> None:
    now = OPEN.opens + since
    verdict = admit(run(limit, interval), OPEN if now < CLOSES else None, now)
    if verdict.welcome:
        ends = limit is not None and now + limit <= CLOSES
        saves = interval is not None and now + START + interval <= CLOSES
        assert OPEN.opens <= now and (ends or saves) and verdict.again is None
    else:
        assert verdict.again is not None and timedelta() < verdict.again <= LONGEST


def owner(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": metadata, "spec": spec}


def _jobs(*seconds: int | None) -> list[dict[str, Any]]:
    return [{"template": {"spec": {"activeDeadlineSeconds": one} if one else {}}} for one in seconds]


@pytest.mark.parametrize(
    ("workload", "found", "limit_s"),
    [
        ({}, None, None),
        ({"spec": {"maximumExecutionTimeSeconds": 600}}, None, 600),
        # What earlier attempts took is gone.
        (
            {
                "spec": {"maximumExecutionTimeSeconds": 600},
                "status": {"accumulatedPastExecutionTimeSeconds": 500},
            },
            None,
            100,
        ),
        ({}, owner("Job", {"activeDeadlineSeconds": 300}), 300),
        ({"spec": {"maximumExecutionTimeSeconds": 600}}, owner("Job", {"activeDeadlineSeconds": 900}), 600),
        ({}, owner("JobSet", {"replicatedJobs": _jobs(60, 90)}), 90),
        ({}, owner("JobSet", {"replicatedJobs": _jobs(60, None)}), None),
        ({}, owner("TrainJob", {}), None),
    ],
)
def test_how_long_a_job_takes_is_the_shortest_of_what_is_said(
    workload: dict[str, Any], found: dict[str, Any] | None, limit_s: int | None
) -> None:
    limit = run_limits(workload, found).limit
    assert limit == (None if limit_s is None else timedelta(seconds=limit_s))


@pytest.mark.parametrize(
    ("note", "minutes"), [("30", 30), ("0.5", 0.5), ("often", None), ("-1", None), ("nan", None)]
)
def test_how_often_it_checkpoints_is_a_number_of_minutes(note: str, minutes: float | None) -> None:
    job = owner("Job", {}, annotations={"trainstack.dev/checkpoint-minutes": note})
    assert run_limits({}, job).interval == (None if minutes is None else timedelta(minutes=minutes))


def test_the_class_of_a_job_that_names_none_is_default() -> None:
    assert run_limits({}, None).priority == "default"
    assert run_limits({"spec": {"priorityClassRef": {"name": "sweep"}}}, None).priority == "sweep"


def test_a_start_takes_as_long_as_the_queue_lets_it() -> None:
    assert f"{START.total_seconds() / 60:.0f}m" == PODS_READY_TIMEOUT


def test_a_deadline_beyond_every_date_is_a_long_one() -> None:
    """A hostile member: the API server takes it, and no arithmetic of dates does."""
    owner = {"kind": "Job", "spec": {"activeDeadlineSeconds": 2**63 - 1}}
    verdict = admit(run_limits({"spec": {}}, owner), OPEN, NOON)
    assert not verdict.welcome and verdict.again
