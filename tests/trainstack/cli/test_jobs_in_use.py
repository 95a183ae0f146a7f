"""Announced effects of an operation on jobs and TrainJobs, however many there are of one kind."""

import datetime
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import cast

import pytest
from pulumi import automation

from infra.engine.plan import PlannedStep
from infra.engine.stack import EngineStack, OnEvent, OperationOutcome
from infra.outputs import jobs as job_outputs
from infra.outputs.cluster import KEY
from tests.trainstack.cli.command import checked
from tests.trainstack.cli.test_summary import preview
from trainstack.cli.operations.jobs_in_use import UNKNOWN, JobsInUse, jobs_in_use, resume_queues
from trainstack.cli.operations.preview import print_preview_json
from trainstack.plans.jobs import BLOCKS, ENDS, RESUBMIT, STAYS, STOPS, JobEffect, RuntimeUse
from trainstack.queues.state import Condition, Job, State

NOW = datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)


def _effects(effect: str, count: int) -> list[JobEffect]:
    names = [f"{effect.rsplit(maxsplit=1)[-1]}-{number}" for number in range(count)]
    return [
        JobEffect(Job("team-a", f"job-{name}", name, "default", "team-a", 0, NOW, ()), effect, "")  # type: ignore[arg-type]
        for name in names
    ]


def test_many_trainjobs_and_jobs_that_stay_hide_no_job_that_ends(capsys: pytest.CaptureFixture[str]) -> None:
    uses = [RuntimeUse("team-a", f"old-{number}", "torch-l4", True) for number in range(30)]
    found = [*_effects(STAYS, 25), *_effects(ENDS, 3), *_effects(STOPS, 21)]
    jobs = JobsInUse(state=State(taken=NOW), effects=found, runtimes=uses)
    assert list(dict.fromkeys(effect for effect, _ in jobs.lines())) == [ENDS, STOPS, STAYS, BLOCKS]
    jobs.announce()
    lines = capsys.readouterr().out.splitlines()
    effects = dict.fromkeys(effect for effect, _ in jobs.lines())
    shown = {effect: [line for line in lines if line.startswith(f"  {effect}: ")] for effect in effects}
    assert [len(rows) for rows in shown.values()] == [3, 21, 21, 21]
    assert " 1 more" in shown[STOPS][-1] and " 5 more" in shown[STAYS][-1] and " 10 more" in shown[BLOCKS][-1]


@pytest.mark.parametrize("schema", [job_outputs.SCHEMA, "trainstack.outputs/2"])
def test_jobs_of_a_stack_with_outputs_of_another_version_are_unknown(schema: str) -> None:
    found = {KEY: automation.OutputValue({"schema_version": schema, "from": "before"}, secret=False)}
    engine = cast(EngineStack, SimpleNamespace(outputs=lambda: found))
    with jobs_in_use(engine, None, None) as jobs:
        assert [effect for effect, _ in jobs.lines()] == [UNKNOWN] and not jobs.drains
    resume_queues(engine, None)


def test_an_uninstall_that_the_engine_refuses_has_a_fix() -> None:
    """Of a release that others depend on, which is only replaced."""
    refused = OperationOutcome(succeeded=False, errors=["other resources depend on it"])
    targets: list[str] = []

    def delete(_: OnEvent, targets: list[str], asked: list[str] = targets) -> OperationOutcome:
        asked += targets
        return refused

    halfway = ("jobset-system", "jobset")
    jobs = JobsInUse(installed={halfway: "urn:of-jobset"}, halfway=[halfway])
    ((_, complete),) = jobs.repairs(cast(EngineStack, SimpleNamespace(delete=delete)))
    outcome = complete(lambda _: None)
    assert targets == ["urn:of-jobset"] and not outcome.succeeded
    cause, fix = outcome.errors
    assert cause == "other resources depend on it" and "[uninstall-interrupted]" in fix
    assert "helm uninstall jobset --namespace jobset-system" in fix and "trainstack refresh" in fix


def test_every_effect_is_one_of_the_published_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = [*_effects(STAYS, 1), *_effects(RESUBMIT, 1), *_effects(ENDS, 1), *_effects(STOPS, 1)]
    uses = [RuntimeUse("team-a", "old", "torch-l4", False)]
    jobs = JobsInUse(state=State(taken=NOW), effects=found, runtimes=uses, partly_unknown="HTTP503")
    print_preview_json(replace(preview(NOW.date()), jobs=jobs.lines()))
    kinds = [row["kind"] for row in checked(capsys.readouterr().out)["ends"]]
    assert kinds == [ENDS, STOPS, RESUBMIT, STAYS, BLOCKS, UNKNOWN]


def test_a_job_that_would_continue_stops_with_its_nodes() -> None:
    held = Condition(true=True, reason="", message="", since=NOW)
    (before,) = _effects(STAYS, 1)
    job = replace(before.job, conditions={"QuotaReserved": held}, assigned={("l4", "cpu"): Decimal(1)})
    nodes = {"labels": {"trainstack.dev/pool": "l4"}}
    step = PlannedStep("replace", "aws:eks/nodeGroup:NodeGroup", "dev-l4-nodes", (), nodes)
    found = JobsInUse(state=State(taken=NOW, jobs=(job,)), effects=[replace(before, job=job, why="networks")])
    ((effect, text),) = found.lines([step])
    assert effect == STOPS and "networks" in text
    assert [effect for effect, _ in found.lines()] == [STAYS]
