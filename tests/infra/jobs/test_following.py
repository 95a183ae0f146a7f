"""Following a run through what may go wrong on the way; the job itself needs no follower."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from infra.errors import Problem, UserError
from infra.jobs.following import follow
from infra.jobs.service import JobPhase, JobState, LogLine, LostError, PhaseChange, ServiceJob
from infra.jobs.stopping import stopped
from infra.launchers.runplan import RunPlan
from tests.infra.jobs.samples import CALLER, NOW, job

TRAINING = job(
    state=JobState.RUNNING,
    phase=JobPhase.TRAINING,
    ended=None,
    changes=(PhaseChange(NOW, JobPhase.TRAINING, ""),),
)
DONE = job(changes=(*TRAINING.changes, PhaseChange(NOW, JobPhase.OVER, "")))
NO_RIGHT = UserError([Problem("login", None, "may not read logs", "Ask.", code="logs-denied")])


@dataclass
class Scripted:
    """A service that gives these answers, one after the other; the last one again and again."""

    jobs: list[ServiceJob | Exception | None]
    lines: list[Sequence[LogLine] | Exception] = field(default_factory=list)
    stops: list[Exception | None] = field(default_factory=list)
    asked_to_stop: int = 0
    unseen: int = 0

    def caller(self) -> object:
        return CALLER

    def keep(self, uri: str, content: bytes) -> bool:
        raise AssertionError(uri)

    def submit(self, plan: RunPlan) -> None:
        raise AssertionError(plan)

    def jobs_of_stack(self) -> Iterator[ServiceJob]:
        raise AssertionError

    def job(self, name: str) -> ServiceJob | None:
        found = self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]
        if isinstance(found, Exception):
            raise found
        return found

    def stop(self, name: str) -> None:
        self.asked_to_stop += 1
        found = self.stops.pop(0) if self.stops else None
        if found is not None:
            raise found

    def logs(self, name: str) -> "Scripted":
        return self

    def read(self) -> Sequence[LogLine]:
        found = self.lines.pop(0) if self.lines else ()
        if isinstance(found, Exception):
            raise found
        return found


def followed(service: Scripted) -> tuple[ServiceJob, list[str], list[float]]:
    reported: list[str] = []
    pauses: list[float] = []
    found = follow(service, "run", reported.append, pauses.append, look_s=5.0)  # type: ignore[arg-type]
    return found, reported, pauses


def test_a_lost_connection_is_reported_once_and_retried_with_a_backoff() -> None:
    lost = LostError("Could not connect to the endpoint URL")
    service = Scripted(
        [TRAINING, *[lost] * 8, DONE], [[LogLine("algo-1", "step 1")], [LogLine("algo-1", "step 2")]]
    )
    found, reported, pauses = followed(service)
    assert found is DONE
    assert [line.partition(":")[0] for line in reported if "connect" in line] == [
        "connection lost",
        "connected again",
    ]
    assert pauses[:9] == [5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert [line for line in reported if line.startswith("step")] == ["step 1", "step 2"]


def test_a_change_is_reported_once_also_when_the_connection_is_lost_after_it() -> None:
    service = Scripted([TRAINING, TRAINING, DONE], [LostError("gone"), []])
    _, reported, _ = followed(service)
    assert [line.split(" ", 2)[2] for line in reported if line.startswith("---")] == ["training", "over"]


def test_lines_that_come_after_the_end_are_shown() -> None:
    service = Scripted([DONE], [[], [LogLine("algo-1", "last words")]])
    assert "last words" in followed(service)[1]


def test_without_the_right_to_read_logs_the_run_is_followed_all_the_same() -> None:
    found, reported, _ = followed(Scripted([TRAINING, DONE], [NO_RIGHT]))
    assert found is DONE
    (line,) = [line for line in reported if line.startswith("--- no access")]
    assert "[logs-denied]" in line


def test_a_run_that_is_deleted_meanwhile_ends_the_following() -> None:
    with pytest.raises(UserError, match=r"\[run-not-found\]"):
        followed(Scripted([TRAINING, None]))


def test_stopping_waits_until_it_is_over_and_asks_once() -> None:
    reported: list[str] = []
    ended = job(state=JobState.STOPPED)
    service = Scripted([LostError("gone"), TRAINING, ended], stops=[LostError("gone"), None])
    found = stopped(service, "run", reported.append, lambda _: None, 1.0)  # type: ignore[arg-type]
    assert found is ended and service.asked_to_stop == 2
    assert sum(line.startswith("stopping: ") for line in reported) == 1


def test_stopping_gives_up_without_a_response() -> None:
    pauses: list[float] = []
    service = Scripted([TRAINING], stops=[LostError("gone")] * 99)
    with pytest.raises(LostError):
        stopped(service, "run", lambda _: None, pauses.append, 1.0)  # type: ignore[arg-type]
    assert len(pauses) == 29
