"""The command with a cluster: books of teams, and the queue."""

import datetime
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from infra.clouds.kubectl import ApiResponse, ClusterApi
from infra.errors import UserError
from tests.agents.gpu_ledger.workloads import DAY
from tests.trainstack.capacity.ledgers import SPACE, TEAM, ask, book
from tests.trainstack.cli.command import checked
from tests.trainstack.queues.test_reading import FORBIDDEN, KUEUE, Scripted, items, workload
from trainstack.cli.app import app
from trainstack.cli.ledgers import sources
from trainstack.cli.scope import Scope

DAYS = 100


@contextmanager
def scripted(teams: Mapping[str, str], answers: Mapping[str, ApiResponse]) -> Iterator[Scope]:
    today = datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    stored = ask(book(lambda _: 1.0, DAYS, begun=int(today.timestamp()) - DAYS * DAY))

    class WithBooks(Scripted):
        def get(self, path: str, accept: str = "", **query: str) -> ApiResponse:
            if "/configmaps/" not in path:
                return super().get(path, accept, **query)
            return stored(path) if f"/{SPACE}/" in path else ApiResponse(404, {"reason": "NotFound"})

    yield Scope("dev-aws", cast(ClusterApi, WithBooks(answers)), teams, None)


def shown(
    monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, ApiResponse], **teams: str
) -> tuple[Any, BaseException | None]:
    """The document, and the error after it."""
    given = {SPACE: TEAM, **teams}
    monkeypatch.setattr(sources, "scope", lambda *_, **__: scripted(given, answers))
    done = CliRunner().invoke(app, ["capacity", "-s", "dev-aws", "--format", "json"])
    return checked(done.stdout), done.exception


def test_books_and_queue_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = {
        "metadata": {"name": "team-red"},
        "spec": {
            "resourceGroups": [
                {"flavors": [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}
            ]
        },
    }
    door = {"metadata": {"name": "default", "namespace": "team-red"}, "spec": {"clusterQueue": "team-red"}}
    flavor = {"metadata": {"name": "a100"}, "spec": {}}
    answers = {
        f"{KUEUE}/workloads": items(workload(spec={"maximumExecutionTimeSeconds": 7200})),
        f"{KUEUE}/localqueues": items(door),
        f"{KUEUE}/clusterqueues": items(queue),
        f"{KUEUE}/resourceflavors": items(flavor),
    }
    found, error = shown(monkeypatch, answers)
    assert error is None
    assert sum(one["held_hours"] for one in found["months"]) == pytest.approx(DAYS * 24 * 8)
    (waiting,) = found["queue"]
    assert (waiting["pool"], waiting["gpus"], waiting["gpu_hours"]) == ("a100", 8, 16)
    assert found["resumable_share"] is None


def test_a_team_without_a_book_is_reported_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    found, error = shown(monkeypatch, {f"{KUEUE}/localqueues": FORBIDDEN}, **{"team-vision": "Vision"})
    assert isinstance(error, UserError) and set(error.codes) == {("ledger-book-missing", "team")}
    assert sum(one["held_hours"] for one in found["months"]) == pytest.approx(DAYS * 24 * 8)
    assert any("localqueues" in note for note in found["notes"])
