"""Releases that an interrupted operation has left uninstalled, wholly or halfway, in a stack in use."""

import pytest

from infra.engine.stack import EngineStack, OperationOutcome
from tests.cluster.lived_in.stack import STACK, LivedIn
from tests.cluster.lived_in.users import RESEARCH, Users
from tests.rehearsal.day2.stack import AWS
from tests.rehearsal.runs import life
from trainstack.cli.operations.jobs_in_use import JobsInUse, jobs_in_use
from trainstack.cli.operations.session import open_engine

pytestmark = [pytest.mark.timeout(300), pytest.mark.more]
NEEDED, LEAF = ("jobset-system", "jobset"), ("kube-system", "nvidia-device-plugin")


@pytest.fixture
def engine(lived: LivedIn, monkeypatch: pytest.MonkeyPatch) -> EngineStack:
    """The stack as commands open it."""
    for name, value in life.environment(lived.rehearsal.home).items():
        monkeypatch.setenv(name, value)
    found, _ = open_engine(STACK, rehearse=True)
    return found


def _records(lived: LivedIn, release: tuple[str, str]) -> list[str]:
    space, name = release
    found = lived.api.list("v1", "Secret", space, labels=f"owner=helm,name={name}")
    return [one["metadata"]["name"] for one in found]


def _uninstalling(lived: LivedIn, release: tuple[str, str]) -> None:
    """Mark the record, as a killed uninstall leaves it."""
    (record,) = _records(lived, release)
    lived.api.patch("v1", "Secret", record, {"metadata": {"labels": {"status": "uninstalling"}}}, release[0])


def _repaired(jobs: JobsInUse, engine: EngineStack) -> list[OperationOutcome]:
    jobs.drain(now=True)
    return [by(lambda _: None) for _, by in jobs.repairs(engine)]


def test_a_release_that_is_gone_or_uninstalled_halfway_is_installed_again(
    lived: LivedIn, users: Users, engine: EngineStack
) -> None:
    users.job(RESEARCH, "train", pods=2)
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods()
    for record in _records(lived, NEEDED):
        lived.api.delete("v1", "Secret", record, NEEDED[0])
    _uninstalling(lived, LEAF)
    with jobs_in_use(engine, lived.rehearsal, AWS.spec()) as jobs:
        assert list(jobs.gone) == [NEEDED] and jobs.drains
        outcomes = _repaired(jobs, engine)
    # One is uninstalled to its end, the other one leaves the state.
    assert [(one.succeeded, one.errors) for one in outcomes] == [(True, []), (True, [])]
    assert _records(lived, LEAF) == []
    assert lived.up()["create"] == 2
    assert users.pods() == before
    with jobs_in_use(engine, lived.rehearsal, AWS.spec()) as jobs:
        assert not jobs.drains
    assert _records(lived, NEEDED) and _records(lived, LEAF)


def test_an_uninstall_is_not_completed_where_others_depend_on_the_release(
    lived: LivedIn, users: Users, engine: EngineStack
) -> None:
    users.job(RESEARCH, "train", pods=2)
    users.reach({(RESEARCH, "train"): "running"})
    before = users.pods()
    _uninstalling(lived, NEEDED)
    with jobs_in_use(engine, lived.rehearsal, AWS.spec()) as jobs:
        (outcome,) = _repaired(jobs, engine)
    assert not outcome.succeeded and any("depend" in error for error in outcome.errors)
    space, name = NEEDED
    assert f"helm uninstall {name} --namespace {space}" in outcome.errors[-1]
    # As its fix says: Helm completes it, then the state forgets the release.
    for record in _records(lived, NEEDED):
        lived.api.delete("v1", "Secret", record, NEEDED[0])
    assert engine.refresh().succeeded
    assert lived.up()["create"] == 1
    assert users.pods() == before
