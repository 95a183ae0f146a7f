"""Ends of a validation's job that send an alert, by events with the details of real responses."""

import json
from typing import Any

import pytest
from moto.events.models import EventPattern

from components.aws.jobs.schedule import ended_badly
from tests.rehearsal.jobs.aws.account import ROLE, Account

_BRIEF = {"StoppingCondition": {"MaxRuntimeInSeconds": 1}}
_FULL = {"faults": [{"on": "aws:sagemaker/trainingJob", "kind": "capacity"}], "run": "1"}


def event(job: dict[str, Any]) -> Any:
    """What EventBridge gets: a training job, as it is described."""
    detail = json.loads(json.dumps(job, default=str))
    return {"source": "aws.sagemaker", "detail-type": "SageMaker Training Job State Change", "detail": detail}


def alerted(job: dict[str, Any], role: str = ROLE) -> bool:
    return bool(EventPattern.load(ended_badly(role)).matches_event(event(job)))


@pytest.mark.parametrize(
    "script, more, faults, expected",
    [
        ("true", {}, {}, False),
        ("exit 1", {}, {}, True),
        ("sleep 60", _BRIEF, {}, True),
        ("true", {}, _FULL, True),
    ],
    ids=["passed", "failed", "too long", "no machines"],
)
def test_ends_that_send_an_alert(
    account: Account, script: str, more: dict[str, Any], faults: dict[str, Any], expected: bool
) -> None:
    account.faults(**faults)
    account.start(script=script, **more)
    job = account.ended("job-1")
    assert alerted(job) is expected, job
    assert alerted(job, f"{ROLE}-of-others") is False


def test_a_job_that_runs_or_was_stopped_is_no_news(account: Account) -> None:
    account.start(script="sleep 60")
    assert not alerted(account.reached("job-1", {"Training"}))
    account.client("sagemaker").stop_training_job(TrainingJobName="job-1")
    assert not alerted(account.ended("job-1"))
