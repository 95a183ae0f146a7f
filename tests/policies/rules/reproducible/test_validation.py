"""MLS-REP-04 on what the engine noted of the Job that waited for a validation."""

import datetime
from dataclasses import replace
from typing import Any

import pytest

from policies.resource import Resource, UnknownValue
from smoke_training.verdict_record import VerdictRecord
from tests.policies.rules.judging import ask, judged, made

JOB = "kubernetes:batch/v1:Job"
TODAY = datetime.date(2026, 11, 23)
ENDED = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
RUN = made(
    JOB,
    "run",
    metadata={"name": "smoke-b2", "namespace": "runs", "labels": {"trainstack.dev/run": "smoke-b2"}},
)
FAILURE = VerdictRecord("FAIL", "FAIL: rank 1", "runs/smoke-b2").line()
SCHEDULE = made("kubernetes:batch/v1:CronJob", "schedule", metadata={"name": "s", "namespace": "runs"})


def watcher(name: str = "smoke-b2", **noted: Any) -> Resource:
    job = made(JOB, "watch", metadata={"name": name, "namespace": "trainstack-watch"})
    return replace(job, **{"modified": ENDED, **noted})


OLD = watcher(modified=datetime.datetime(2026, 8, 1, tzinfo=datetime.UTC))


@pytest.mark.parametrize(
    ("around", "said"),
    [
        ([watcher()], "pass"),
        ([], "fail metadata.name"),
        ([watcher("smoke-a1")], "fail metadata.name"),
        ([watcher(init_errors=(FAILURE,))], "fail metadata.name"),
        ([OLD], "fail metadata.name"),
        ([OLD, SCHEDULE], "pass"),
        ([watcher(modified=None)], "undetermined"),
        ([watcher(modified=UnknownValue("modified", "is not known before the deployment"))], "undetermined"),
    ],
)
def test_a_validation_counts_when_its_watcher_ended_well_and_not_long_ago(
    around: list[Resource], said: str
) -> None:
    assert judged("MLS-REP-04", RUN, *around, today=TODAY)["run"] == said


def test_the_reason_is_reported_and_other_jobs_are_ignored() -> None:
    failed = watcher(init_errors=(f"Last lines:\n{FAILURE}\n", "timed out"))
    of_run, of_watcher, of_other = ask("MLS-REP-04", RUN, failed, made(JOB, metadata={"name": "smoke-b2"}))
    assert of_run.message.endswith("FAIL: rank 1")
    assert (of_watcher.result, of_other.result) == ("pass", "not-applicable")


def test_a_validation_that_lost_its_label_is_missed_by_its_watcher() -> None:
    plain = made(JOB, "run", metadata={"name": "smoke-b2", "namespace": "runs"})
    assert judged("MLS-REP-04", plain, watcher(), today=TODAY) == {
        "run": "not-applicable", "watch": "fail metadata.name",
    }  # fmt: skip
