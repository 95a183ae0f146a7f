"""What `trainstack run` needs of a managed training service, and what that answers, whichever it is."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from infra.jobs.aws.search.tuning import TuningSpec
from smoke_training.launchers.runplan import RunPlan

Moment = datetime.datetime
"""With a time zone."""


class LostError(Exception):
    """The service did not answer: no connection, or it is not well. Nothing follows about the job."""


class JobState(StrEnum):
    """What becomes of a job."""

    RUNNING = "running"
    """Also while it waits for machines."""
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    """By somebody, or by one of its time limits: never a success."""

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.STOPPED)


class JobPhase(StrEnum):
    """What a job does at the moment, where people have to know it; services have more words than these."""

    WAITING = "waiting for machines"
    LOADING = "loading code and data"
    TRAINING = "training"
    INTERRUPTED = "interrupted"
    """The cloud took its spot machines; the service starts it again when there are others."""
    SAVING = "saving the model"
    OUT_OF_TIME = "out of time"
    """It ran as long as it was allowed to."""
    WAITED_TOO_LONG = "waited too long"
    """It waited and ran as long as it was allowed to, together."""
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True)
class PhaseChange:
    """One step in the life of a job."""

    at: Moment
    phase: JobPhase
    said: str
    """The service's own words; they are not stable."""


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
    reserved: bool = False
    """Its machines are part of a training plan or a reservation, which is paid apart."""
    search: bool = False
    """Whether it is a search whose trials are jobs themselves; they are billed, not the search."""
    state: JobState
    phase: JobPhase
    reason: str = ""
    """Why it failed or was stopped, in the service's words."""
    created: Moment
    ended: Moment | None = None
    max_run_s: int
    trained_s: int | None = None
    """By the clock, on all machines at once; None: it has not begun, or not ended."""
    billed_s: int | None = None
    """Of one machine: spot's discount is in it. None: nothing yet, or the service has not said it yet."""
    warm_s: int = 0
    """For which its machines were kept afterwards, billed as well; of one machine."""
    changes: tuple[PhaseChange, ...] = ()
    model_uri: str = ""
    checkpoint_uri: str = ""
    experiment: str = ""
    """Of MLflow."""
    best: str = ""
    """Of a search: its best trial."""


@dataclass(frozen=True)
class CallerIdentity:
    """Who is logged in."""

    account: str
    session: str
    """The name of the session or user, the last part of its ARN."""


@dataclass(frozen=True)
class LogLine:
    """A line that a node of a job wrote."""

    host: str
    text: str


class JobLogs(Protocol):
    """The lines of one job, each once."""

    def read(self) -> Sequence[LogLine]:
        """What was written since the last time; lines of one host in their order. Raises LostError."""
        ...


class JobService(Protocol):
    """A managed training service with one login, for one stack.

    Every method raises UserError where it is refused, with a fix, and LostError where it is not answered.
    """

    unseen: int
    """Jobs of the stack, by their names, that the last `jobs` left out: the login may not read them."""

    def caller(self) -> CallerIdentity:
        """Who is logged in."""
        ...

    def keep(self, uri: str, content: bytes) -> bool:
        """Put an object where it is missing; whether it was. What is there under that name stays."""
        ...

    def content(self, uri: str) -> bytes:
        """What an object holds, such as a result."""
        ...

    def submit(self, plan: RunPlan) -> None:
        """Start a job. When this raises UserError there is none of that name by this plan."""
        ...

    def job(self, name: str) -> ServiceJob | None:
        """The job of that name; None where there is none."""
        ...

    def jobs(self, since: Moment | None = None) -> Iterator[ServiceJob]:
        """Jobs of the stack that changed since then, newest first; of anybody."""
        ...

    def stop(self, name: str) -> None:
        """Ask a job to end. One that is over, or about to be, stays as it is."""
        ...

    def logs(self, name: str) -> JobLogs:
        """What its nodes write, from the beginning."""
        ...


@runtime_checkable
class Searching(Protocol):
    """What a service that searches hyperparameters has besides."""

    def search(self, plan: RunPlan, tuning: TuningSpec) -> None:
        """Start a search whose trials are runs of this plan.

        Raises UserError where it is refused, LostError where it is not known whether there is one.
        """
        ...
