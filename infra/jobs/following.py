"""Follows a run until it is over: phases and log lines, with retries on lost connections."""

from collections.abc import Callable

from infra.errors import UserError
from infra.jobs.service import (
    JobLogs,
    JobPhase,
    JobService,
    LostError,
    PhaseChange,
    ServiceJob,
    run_not_found,
)

LOOK_S = 5.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
# CloudWatch shows lines some seconds after they were written.
_LAST_LOOKS = 2

_TEXTS = {
    JobPhase.WAITING: "waiting for machines",
    JobPhase.LOADING: "loading code and data",
    JobPhase.TRAINING: "training",
    JobPhase.INTERRUPTED: (
        "interrupted: the cloud reclaimed the spot machines. The service waits for others, which is not "
        "billed, and restarts the run from its last checkpoint"
    ),
    JobPhase.SAVING: "saving the model",
    JobPhase.OUT_OF_TIME: "out of time: it ran for --max-hours",
    JobPhase.WAITED_TOO_LONG: "out of time: no spot machines within --max-wait",
    JobPhase.ENDING: "ending: it has two minutes to write a checkpoint",
    JobPhase.OVER: "over",
}

Notify = Callable[[str], None]
Pause = Callable[[float], None]
"""Waits a number of seconds."""


def follow(
    service: JobService, name: str, notify: Notify, pause: Pause, look_s: float = LOOK_S
) -> ServiceJob:
    """Report changes and log lines until the job is over; return it.

    A lost connection is reported once and retried without limit, with a backoff up to a minute: the job does
    not need it. Raises UserError where the service refuses to describe the job, or no longer has it.
    """
    logs: JobLogs | None = service.logs(name)
    reported, lost = 0, 0
    last_looks = _LAST_LOOKS
    while True:
        try:
            job = service.job(name)
            if job is None:
                raise run_not_found(name)
            for change in job.changes[reported:]:
                notify(f"--- {text(change)}")
                reported += 1
            logs = _report_lines(logs, job.nodes > 1, notify)
        except LostError as error:
            if not lost:
                notify(f"connection lost: {error}. The run continues; retrying")
            pause(min(_SHORTEST_WAIT_S * 2 ** min(lost, 10), _LONGEST_WAIT_S))
            lost += 1
            continue
        if lost:
            notify("connected again")
            lost = 0
        if job.state.over:
            if logs is None or not last_looks:
                return job
            last_looks -= 1
        pause(look_s)


def text(change: PhaseChange) -> str:
    """A change as text, with the message of the service."""
    message = f" ({change.message})" if change.message else ""
    return f"{change.at:%H:%M:%S} {_TEXTS[change.phase]}{message}"


def _report_lines(logs: JobLogs | None, several: bool, notify: Notify) -> JobLogs | None:
    """Report new lines; return the logs, or None without access to them. Raises LostError."""
    if logs is None:
        return None
    try:
        lines = logs.read()
    except UserError as error:
        notify(f"--- no access to its log lines: {error}")
        return None
    for line in lines:
        notify(f"{line.host} | {line.text}" if several else line.text)
    return logs
