"""A run as it goes: its phases and what its nodes write, until it is over, through lost connections."""

from collections.abc import Callable, Iterable

from infra.errors import Problem, UserError
from infra.jobs.service import JobLogs, JobPhase, JobService, LogLine, LostError, PhaseChange, ServiceJob

LOOK_S = 5.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0
# CloudWatch shows lines some seconds after they were written, also the last ones.
_LAST_LOOKS = 2

_WORDS = {
    JobPhase.WAITING: "waiting for machines",
    JobPhase.LOADING: "loading code and data",
    JobPhase.TRAINING: "training",
    JobPhase.INTERRUPTED: (
        "interrupted: the cloud took the spot machines back. The service waits for others, which is not "
        "billed, and starts the run again from its last checkpoint"
    ),
    JobPhase.SAVING: "saving the model",
    JobPhase.OUT_OF_TIME: "out of time: it ran for --max-hours",
    JobPhase.WAITED_TOO_LONG: "out of time: there were no spot machines for long enough (--max-wait)",
    JobPhase.ENDING: "ending: it has two minutes to write a checkpoint",
    JobPhase.OVER: "over",
}

Tell = Callable[[str], None]
Pause = Callable[[float], None]
"""Waits so many seconds."""


def follow(service: JobService, name: str, tell: Tell, pause: Pause, look_s: float = LOOK_S) -> ServiceJob:
    """Tell what happens until the job is over, and return it.

    A lost connection is told once and tried again, longer apart each time up to a minute, without an end: the
    job does not need it. Raises UserError where the service refuses to describe the job, or has it no more.
    """
    logs: JobLogs | None = service.logs(name)
    told, lost = 0, 0
    last_looks = _LAST_LOOKS
    while True:
        try:
            job = _job(service, name)
            told += _tell_changes(job.changes[told:], tell)
            logs = _tell_lines(logs, job.nodes > 1, tell)
        except LostError as error:
            if not lost:
                tell(f"connection lost: {error}. The run goes on; trying again")
            pause(min(_SHORTEST_WAIT_S * 2 ** min(lost, 10), _LONGEST_WAIT_S))
            lost += 1
            continue
        if lost:
            tell("connected again")
            lost = 0
        if job.state.over:
            if logs is None or not last_looks:
                return job
            last_looks -= 1
        pause(look_s)


def words(change: PhaseChange) -> str:
    """A change in words, with the service's own."""
    said = f" ({change.said})" if change.said else ""
    return f"{change.at:%H:%M:%S} {_WORDS[change.phase]}{said}"


def _job(service: JobService, name: str) -> ServiceJob:
    job = service.job(name)
    if job is None:
        fix = "It may have been deleted by somebody: see `trainstack runs`."
        raise UserError([Problem("run", name, "the service has it no more", fix, code="run-not-found")])
    return job


def _tell_changes(changes: Iterable[PhaseChange], tell: Tell) -> int:
    """Tell changes; how many."""
    count = 0
    for change in changes:
        tell(f"--- {words(change)}")
        count += 1
    return count


def _tell_lines(logs: JobLogs | None, several: bool, tell: Tell) -> JobLogs | None:
    """Tell new lines; the logs, or None where they may not be read. Raises LostError."""
    if logs is None:
        return None
    try:
        lines = logs.read()
    except UserError as error:
        tell(f"--- its lines cannot be shown: {error}")
        return None
    for line in lines:
        tell(_shown(line, several))
    return logs


def _shown(line: LogLine, several: bool) -> str:
    return f"{line.host} | {line.text}" if several else line.text
