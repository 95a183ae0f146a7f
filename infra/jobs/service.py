"""Interface of a managed training service for `trainstack run`, and its records."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from infra.errors import Problem, UserError
from infra.launchers.runplan import RunPlan

Moment = datetime.datetime
"""With a time zone."""


class LostError(Exception):
    """No response: the connection failed, or the service is unavailable. The state of the job is unknown."""


def run_not_found(name: str) -> UserError:
    """The error for a run that the service no longer has."""
    rule, fix = "the service no longer has it", "See `trainstack runs`."
    return UserError([Problem("run", name, rule, fix, code="run-not-found")])


class JobState(StrEnum):
    """State of a job."""

    RUNNING = "running"
    """Also while it waits for machines."""
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    """By a user, or by one of its time limits: never a success."""

    @property
    def over(self) -> bool:
        """Return whether it has ended."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)


class JobPhase(StrEnum):
    """Phase of a job, for output; services have more phases than these."""

    WAITING = "waiting for machines"
    LOADING = "loading code and data"
    TRAINING = "training"
    INTERRUPTED = "interrupted"
    """The cloud reclaimed its spot machines; the service restarts it when others are available."""
    SAVING = "saving the model"
    OUT_OF_TIME = "out of time"
    """It reached its run time limit."""
    WAITED_TOO_LONG = "waited too long"
    """It reached its limit of waiting and run time together."""
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True)
class PhaseChange:
    """A phase change of a job."""

    at: Moment
    phase: JobPhase
    message: str
    """Message of the service; not stable."""


@dataclass(frozen=True, kw_only=True)
class ServiceJob:
    """A job as the service describes it. Times in seconds where the name ends in `_s`."""

    name: str
    stack: str
    person: str
    team: str
    machine: str
    nodes: int
    spot: bool
    flex_start: bool = False
    reserved: bool = False
    """Its machines are part of a training plan or reservation, which is billed separately."""
    search: bool = False
    """Whether it is a search; its trials are jobs themselves, and billed instead."""
    state: JobState
    phase: JobPhase
    reason: str = ""
    """Reason of a failure or stop, from the service."""
    created: Moment
    ended: Moment | None = None
    max_run_s: int
    trained_s: int | None = None
    """Wall-clock time on all machines; None: not begun, or not ended."""
    billed_s: int | None = None
    """Of one machine, with the discount of spot. None: nothing or unknown yet."""
    warm_s: int = 0
    """Billed time that its machines were kept warm afterwards; of one machine."""
    changes: tuple[PhaseChange, ...] = ()
    model_uri: str = ""
    checkpoint_uri: str = ""
    experiment: str = ""
    """Experiment in MLflow."""
    best: str = ""
    """Best trial of a search."""


@dataclass(frozen=True)
class CallerIdentity:
    """Identity of the login."""

    account: str
    session: str
    """The name of the session or user, the last part of its ARN."""


@dataclass(frozen=True)
class LogLine:
    """A log line of a node."""

    host: str
    text: str


class JobLogs(Protocol):
    """The lines of one job, each once."""

    def read(self) -> Sequence[LogLine]:
        """New lines since the last call; lines of one host in order. Raises LostError."""


class JobService(Protocol):
    """A managed training service with one login, for one stack.

    Every method raises UserError (with a fix) for a refused request, and LostError without a response.
    """

    unseen: int
    """Number of jobs of the stack, by name, that the last `jobs` could not read without permission."""

    def caller(self) -> CallerIdentity:
        """The identity of the login."""

    def keep(self, uri: str, content: bytes) -> bool:
        """Write an object unless it exists; return whether it was missing."""

    def content(self, uri: str) -> bytes:
        """The content of an object, such as a result."""

    def submit(self, plan: RunPlan) -> None:
        """Start a job. If this raises UserError, no job was created."""

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name; None if it does not exist."""

    def jobs(self, since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:
        """Jobs of the stack that changed since then, newest first, of all people.

        `running`: only those that are not over, without a request for each older one.
        """

    def stop(self, name: str) -> None:
        """Stop a job. No effect on one that is over or stopping."""

    def logs(self, name: str) -> JobLogs:
        """Log lines of its nodes, from the beginning."""


@dataclass(frozen=True, kw_only=True)
class TuningSpec:
    """At most `trials` trials, `parallel` of them at a time, for the best value of a metric in their log."""

    trials: int
    parallel: int
    strategy: str
    metric: str
    regex: str
    goal: str
    ranges: Mapping[str, Mapping[str, Any]]
    """Ranges by parameter: `values`, or `from`, `to` and `scale`."""


@runtime_checkable
class Searching(Protocol):
    """Additional method of a service with hyperparameter search."""

    def search(self, plan: RunPlan, tuning: TuningSpec) -> None:
        """Start a search whose trials are runs of this plan.

        Raises UserError where it is refused, LostError where the outcome is unknown.
        """
