"""A managed training service that says what a test wrote down, and a clock that only waiting moves."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field

from components.jobs.waiting import Clock
from infra.jobs.service import CallerIdentity, JobLogs, JobPhase, JobState, LostError, Moment, ServiceJob
from infra.launchers.runplan import RunPlan

ACCOUNT = "123456789012"
NAME = "smoke-0123456789-261126120000"
WHEN = datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC)


def job(
    state: JobState = JobState.RUNNING,
    phase: JobPhase = JobPhase.TRAINING,
    reason: str = "",
    billed_s: int | None = None,
    name: str = NAME,
) -> ServiceJob:
    """A job of two machines."""
    return ServiceJob(
        name=name, stack="small", person="", team="platform", machine="ml.g6.xlarge", nodes=2, spot=False,
        state=state, phase=phase, reason=reason, created=WHEN, max_run_s=900, billed_s=billed_s,
    )  # fmt: skip


@dataclass
class Scripted:
    """`answers` come one after the other, the last one again and again; None: there is no such job."""

    answers: list[ServiceJob | LostError | None]
    objects: dict[str, bytes] = field(default_factory=dict)
    listed: list[ServiceJob] = field(default_factory=list)
    submitted: list[RunPlan] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    unseen: int = 0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, self._pass)

    def _pass(self, seconds: float) -> None:
        self.seconds += seconds

    def caller(self) -> CallerIdentity:
        return CallerIdentity(ACCOUNT, "ada")

    def keep(self, uri: str, content: bytes) -> bool:
        new = uri not in self.objects
        self.objects.setdefault(uri, content)
        return new

    def content(self, uri: str) -> bytes:
        if uri not in self.objects:
            raise LostError(f"no {uri}")
        return self.objects[uri]

    def submit(self, plan: RunPlan) -> None:
        self.submitted.append(plan)

    def job(self, name: str) -> ServiceJob | None:
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, LostError):
            raise found
        return found

    def jobs(self, since: Moment | None = None, *, running: bool = False) -> Iterator[ServiceJob]:
        return iter(self.listed)

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def logs(self, name: str) -> JobLogs:
        raise NotImplementedError
