"""A job is followed to its end, whatever that is; no end but a completion is a success."""

import dataclasses

import pytest

from components.jobs.waiting import SILENCE_S, JobError, stop, wait, why_not_completed
from infra.jobs.service import JobPhase, JobState, LostError, PhaseChange, ServiceJob
from tests.components.jobs.scripted import NAME, WHEN, Scripted, job

DONE = job(JobState.COMPLETED, JobPhase.OVER, billed_s=90)


def waited(service: Scripted, start_within_s: float = 3600) -> ServiceJob:
    return wait(service, NAME, start_within_s, service.clock)


def test_a_job_is_followed_through_all_its_phases() -> None:
    phases = (
        JobPhase.WAITING,
        JobPhase.LOADING,
        JobPhase.TRAINING,
        JobPhase.INTERRUPTED,
        JobPhase.TRAINING,
        JobPhase.SAVING,
    )
    service = Scripted([*(job(phase=phase) for phase in phases), DONE])
    assert waited(service) is DONE
    assert 0 < service.seconds <= len(phases) * 15


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (
            job(JobState.FAILED, JobPhase.OVER, "AlgorithmError: , exit code: 1"),
            "AlgorithmError: , exit code: 1",
        ),
        (job(JobState.FAILED, JobPhase.OVER, "CapacityError: Unable to provision"), "smoke.pools"),
        (job(JobState.FAILED, JobPhase.OVER, "InternalServerError: We"), "A fault of the service"),
        (job(JobState.FAILED, JobPhase.OVER), "gave no reason"),
        (job(JobState.STOPPED, JobPhase.OVER), "stopped by a user"),
        (job(JobState.STOPPED, JobPhase.OUT_OF_TIME), "smoke.timeout_s"),
        (job(JobState.STOPPED, JobPhase.WAITED_TOO_LONG), "spot machines"),
    ],
)
def test_every_other_end_says_why(end: ServiceJob, words: str) -> None:
    assert words in why_not_completed(waited(Scripted([end])))


def test_a_job_without_machines_is_stopped_in_time_and_says_what_the_service_said() -> None:
    waiting = dataclasses.replace(
        job(phase=JobPhase.WAITING),
        changes=(PhaseChange(WHEN, JobPhase.WAITING, "Insufficient capacity error"),),
    )
    service = Scripted([*[waiting] * 4, job(JobState.STOPPED, JobPhase.OVER)])
    with pytest.raises(JobError, match=r"within 2 s .*: Insufficient"):
        waited(service, start_within_s=2)
    assert service.stopped == [NAME]


def test_a_service_that_comes_back_costs_nothing_and_a_lost_one_is_given_up() -> None:
    assert waited(Scripted([LostError("no route"), job(), LostError("no route"), DONE])) is DONE
    service = Scripted([LostError("no route")])
    with pytest.raises(JobError, match=r"no route\)"):
        waited(service)
    assert SILENCE_S < service.seconds < SILENCE_S + 30 and service.stopped == []


def test_a_deleted_job_is_an_end() -> None:
    with pytest.raises(JobError, match="deleted"):
        waited(Scripted([job(), None]))


@pytest.mark.parametrize("over", [None, DONE])
def test_what_is_over_or_gone_needs_no_stop(over: ServiceJob | None) -> None:
    service = Scripted([over])
    stop(service, NAME, service.clock)
    assert service.stopped == []


def test_a_stop_is_asked_for_once_and_waited_for() -> None:
    service = Scripted(
        [
            LostError("busy"),
            job(),
            job(JobState.STOPPING, JobPhase.ENDING),
            job(JobState.STOPPED, JobPhase.OVER),
        ]
    )
    stop(service, NAME, service.clock)
    assert service.stopped == [NAME]
    stuck = Scripted([job(JobState.STOPPING, JobPhase.ENDING)])
    with pytest.raises(JobError, match="within 600 s"):
        stop(stuck, NAME, stuck.clock)
