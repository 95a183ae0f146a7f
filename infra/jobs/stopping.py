"""Ending a run, and waiting until it is."""

from infra.errors import Problem, UserError
from infra.jobs.following import Pause, Tell
from infra.jobs.service import JobService, LostError, ServiceJob

_TRIES_UNANSWERED = 30


def stopped(service: JobService, name: str, tell: Tell, pause: Pause, look_s: float) -> ServiceJob:
    """Stop a run and wait until it is over; the job then.

    Raises UserError where the service refuses, LostError where it does not answer for long: then it is not
    known whether the run goes on.
    """
    asked, unanswered = False, 0
    while True:
        try:
            if not asked:
                service.stop(name)
                asked = True
                tell("stopping: its script has two minutes to write a checkpoint")
            job = service.job(name)
        except LostError as error:
            unanswered += 1
            if unanswered == 1:
                tell(f"connection lost: {error}. Trying again")
            if unanswered >= _TRIES_UNANSWERED:
                raise
            pause(look_s)
            continue
        unanswered = 0
        if job is None:
            raise UserError(
                [
                    Problem(
                        "run",
                        name,
                        "the service has it no more",
                        "See `trainstack runs`.",
                        code="run-not-found",
                    )
                ]
            )
        if job.state.over:
            return job
        pause(look_s)
