"""Stops a run and waits until it is over."""

from infra.jobs.following import Notify, Pause
from infra.jobs.service import JobService, LostError, ServiceJob, run_not_found

_TRIES_UNANSWERED = 30


def stopped(service: JobService, name: str, notify: Notify, pause: Pause, look_s: float) -> ServiceJob:
    """Stop a run, wait until it is over, and return the job.

    Raises UserError where the service refuses, LostError without a response for long: then the state of the
    run is unknown.
    """
    requested, failures = False, 0
    while True:
        try:
            if not requested:
                service.stop(name)
                requested = True
                notify("stopping: its script has two minutes to write a checkpoint")
            job = service.job(name)
        except LostError as error:
            failures += 1
            if failures == 1:
                notify(f"connection lost: {error}. Retrying")
            if failures >= _TRIES_UNANSWERED:
                raise
            pause(look_s)
            continue
        failures = 0
        if job is None:
            raise run_not_found(name)
        if job.state.over:
            return job
        pause(look_s)
