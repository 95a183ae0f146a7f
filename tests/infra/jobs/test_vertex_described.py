"""States of Vertex AI as states and phases of a job."""

from typing import Any

import pytest

from infra.job_roles import account_of
from infra.jobs.gcp.described import described, moment
from infra.jobs.gcp.prices import price_share
from infra.jobs.service import JobPhase, JobState

TIMES = {
    "createTime": "2026-11-26T15:00:00.123456789Z",
    "startTime": "2026-11-26T15:05:00Z",
    "endTime": "2026-11-26T16:05:00Z",
}


def job(state: str, *, strategy: str = "STANDARD", timeout: str = "7200s", **changes: Any) -> dict[str, Any]:
    return {
        "name": "projects/1/locations/us-central1/customJobs/7",
        "displayName": "small-gcp-ada-finetune-1",
        "state": f"JOB_STATE_{state}",
        "labels": {"trainstack-stack": "small-gcp", "trainstack-person": "ada"},
        "jobSpec": {
            "workerPoolSpecs": [
                {"machineSpec": {"machineType": "g2-standard-8"}, "replicaCount": 1},
                {"machineSpec": {"machineType": "g2-standard-8"}, "replicaCount": 3},
            ],
            "scheduling": {"timeout": timeout, "strategy": strategy},
        },
        **TIMES,
        **changes,
    }


@pytest.mark.parametrize(
    ("state", "expected", "phase"),
    [
        ("SUCCEEDED", JobState.COMPLETED, JobPhase.OVER),
        ("FAILED", JobState.FAILED, JobPhase.OVER),
        ("CANCELLED", JobState.STOPPED, JobPhase.OVER),
        ("EXPIRED", JobState.STOPPED, JobPhase.OUT_OF_TIME),
        ("PARTIALLY_SUCCEEDED", JobState.FAILED, JobPhase.OVER),
        ("PAUSED", JobState.STOPPED, JobPhase.OVER),
    ],
)
def test_every_end_is_one(state: str, expected: JobState, phase: JobPhase) -> None:
    found = described(job(state))
    assert (found.state, found.phase) == (expected, phase) and found.state.over
    assert found.trained_s == found.billed_s == 3600 and found.nodes == 4


@pytest.mark.parametrize(
    ("state", "expected", "phase"),
    [
        ("QUEUED", JobState.RUNNING, JobPhase.WAITING),
        ("PENDING", JobState.RUNNING, JobPhase.WAITING),
        ("RUNNING", JobState.RUNNING, JobPhase.TRAINING),
        ("UPDATING", JobState.RUNNING, JobPhase.TRAINING),
        ("CANCELLING", JobState.STOPPING, JobPhase.ENDING),
        ("A_NEW_ONE", JobState.RUNNING, JobPhase.TRAINING),
    ],
)
def test_what_goes_on_is_no_end(state: str, expected: JobState, phase: JobPhase) -> None:
    open_job = {key: value for key, value in job(state).items() if key not in ("startTime", "endTime")}
    found = described(open_job)
    assert (found.state, found.phase) == (expected, phase) and found.billed_s is None


def test_a_job_that_waits_again_was_interrupted() -> None:
    again = {key: value for key, value in job("PENDING").items() if key != "endTime"}
    assert described(again).phase is JobPhase.INTERRUPTED


def test_a_job_that_was_cancelled_at_its_limit_is_out_of_time() -> None:
    assert described(job("CANCELLED", timeout="3600s")).phase is JobPhase.OUT_OF_TIME


def test_spot_is_billed_for_its_share() -> None:
    assert described(job("SUCCEEDED", strategy="SPOT"), 0.4).billed_s == 1440
    assert described(job("SUCCEEDED", strategy="SPOT")).billed_s == 3600
    assert described(job("SUCCEEDED"), 0.4).billed_s == 3600


def test_whose_it_is_stands_in_its_labels_too() -> None:
    found = described(job("SUCCEEDED"))
    assert (found.stack, found.person, found.team) == ("small-gcp", "ada", "")


def test_times_have_more_digits_than_python_takes() -> None:
    assert moment("2026-11-26T15:00:00.123456789Z").microsecond == 123456
    assert moment("2026-11-26T15:00:00Z").microsecond == 0


@pytest.mark.parametrize(
    ("role", "account"),
    [
        ("arn:aws:iam::123456789012:role/ada", "123456789012"),
        ("ada@research.iam.gserviceaccount.com", "research"),
        ("ada@research.example.com.iam.gserviceaccount.com", "example.com:research"),
    ],
)
def test_where_an_identity_belongs(role: str, account: str) -> None:
    assert account_of(role) == account


def test_flex_start_jobs_cost_their_share_of_the_price_on_demand() -> None:
    found = described(job("SUCCEEDED", strategy="FLEX_START"), 0.5)
    assert found.flex_start and not found.spot and found.billed_s == 1800
    share = price_share("a3-highgpu-8g", "us-central1", "FLEX_START")
    assert share is not None and 0.4 < share < 0.8  # the fee of the service has no discount
    assert price_share("a3-highgpu-8g", "us-central1", "STANDARD") is None
