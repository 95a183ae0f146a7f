"""Wait for a job of a managed training service, and explain its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from infra.jobs.service import JobPhase, JobService, JobState, LostError, ServiceJob

# Increasing intervals: a start takes minutes, and services count requests.
_FIRST_S, _LATER_S, _FACTOR = 1.0, 15.0, 1.5
SILENCE_S = 600.0
"""Time without a response after which the wait is given up; the job keeps running."""
STOP_PATIENCE_S = 600.0


class JobError(Exception):
    """A job that did not start, or was not followed to its end, with the consequence."""


@dataclass(frozen=True)
class Clock:
    """Seconds, and a sleep function."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


REAL = Clock()


def wait(service: JobService, name: str, start_within_s: float, clock: Clock = REAL) -> ServiceJob:
    """Follow a job to its end; one without machines in time is stopped.

    Raises JobError, and UserError where the service denies access. The job keeps running when a wait is given
    up; the next wait finds it.
    """
    began = responded = clock.now()
    pause = _FIRST_S
    while True:
        try:
            job = service.job(name)
        except LostError as error:
            if clock.now() - responded > SILENCE_S:
                lost = f"the service gave no answer for {SILENCE_S:.0f} s ({error})"
                raise JobError(f"{lost}; the job goes on, and the next deploy waits for it") from error
        else:
            responded = clock.now()
            if job is None:
                raise JobError("the job does not exist any more: it was deleted")
            if job.state.over:
                return job
            if job.phase in (JobPhase.WAITING, JobPhase.INTERRUPTED) and clock.now() - began > start_within_s:
                stop(service, name, clock)
                text = job.changes[-1].message if job.changes else ""
                late = f"no machines within {start_within_s:.0f} s (smoke.queue_timeout_s)"
                raise JobError(f"{late}: {text or 'the service gave no reason'}")
        clock.sleep(pause)
        pause = min(_LATER_S, pause * _FACTOR)


def stop(service: JobService, name: str, clock: Clock = REAL) -> None:
    """Stop a running job, and wait until its machines are released; one that is gone is over.

    Raises JobError, and UserError where the service denies access.
    """
    until = clock.now() + STOP_PATIENCE_S
    asked = False
    while clock.now() < until:
        try:
            job = service.job(name)
            if job is None or job.state.over:
                return
            if not asked:
                service.stop(name)
                asked = True
        except LostError:
            pass
        clock.sleep(_FIRST_S)
    raise JobError(f"job {name} did not stop within {STOP_PATIENCE_S:.0f} s")


def why_not_completed(job: ServiceJob) -> str:
    """The reason of a job that ended without success, in a sentence or two.

    A stopped one is no success: the waiter of AWS's SDK treats it as one (botocore, sagemaker
    waiters-2.json).
    """
    if job.phase is JobPhase.OUT_OF_TIME:
        return "It exceeded its time limit (smoke.timeout_s), and the service stopped it."
    if job.phase is JobPhase.WAITED_TOO_LONG:
        return "It exceeded its time limit for waiting for spot machines, and the service stopped it."
    if job.state is JobState.STOPPED:
        return "It was stopped by a user."
    if job.reason.startswith(("CapacityError", "Resources are insufficient")):
        return f"{job.reason} Try again later, or let smoke.pools name another machine."
    if job.reason.startswith(("InternalServerError", "Internal error occurred")):
        return f"{job.reason} A fault of the service: try again."
    return job.reason or "The service gave no reason."
