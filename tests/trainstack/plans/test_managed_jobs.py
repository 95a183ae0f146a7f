"""Runs of a managed service that lose their identity when a person or a team is removed or moved."""

from typing import Any

from infra import stackspec
from infra.jobs.service import JobPhase, JobState, ServiceJob
from infra.outputs.jobs import JobOutputs
from infra.stackspec import StackSpec
from tests.infra.jobs import samples
from trainstack.plans.managed_jobs import identity_losses

TEAMS = {"ada": "vision", "ben": "vision", "eve": "language"}


def _outputs(spec: StackSpec) -> JobOutputs:
    """The people of a spec, as they are deployed."""
    layout: Any = spec.layout
    folders = {team.name: team.data_folder for team in spec.teams}
    people = [
        samples.ADA.model_copy(update={"name": one.name, "team": one.team, "folder": folders[one.team]})
        for one in layout.people
    ]
    return samples.OUTPUTS.model_copy(update={"people": tuple(people)})


def _with(spec: StackSpec, teams: dict[str, str]) -> StackSpec:
    """The spec with these people, in these teams."""
    layout: Any = spec.layout
    people = [one.model_copy(update={"team": teams[one.name]}) for one in layout.people if one.name in teams]
    return spec.model_copy(update={"layout": layout.model_copy(update={"people": tuple(people)})})


def _job(person: str, state: JobState = JobState.RUNNING) -> ServiceJob:
    return samples.job(f"small-aws-{person}-train", person=person, state=state, phase=JobPhase.TRAINING)


def test_a_run_that_is_stopping_loses_its_identity_while_it_saves() -> None:
    spec = stackspec.load_file("small-aws").spec
    (lost,) = identity_losses(_outputs(spec), None, [_job("ada", JobState.STOPPING)])
    assert "trainstack stop" not in str(lost) and "trainstack runs" in str(lost)
    (lost,) = identity_losses(_outputs(spec), None, [_job("ada")])
    assert "trainstack stop" in str(lost) and "trainstack runs" in str(lost)


def test_runs_of_people_who_are_removed_or_moved_lose_their_identity() -> None:
    spec = stackspec.load_file("small-aws").spec
    outputs, jobs = _outputs(spec), [_job(name) for name in (*TEAMS, "", "gone")]
    jobs += [_job(name, state) for name in TEAMS for state in JobState if state.over]

    def lost(after: StackSpec | None) -> list[str]:
        return [one.job.person for one in identity_losses(outputs, after, jobs)]

    assert {one.name: one.team for one in outputs.people} == TEAMS
    assert lost(spec) == []
    assert lost(_with(spec, {"ada": "vision", "ben": "vision"})) == ["eve"]
    assert lost(_with(spec, {**TEAMS, "ada": "language"})) == ["ada"]
    # A renamed team that keeps its folder keeps its people's rights.
    renamed = [
        team.model_copy(update={"name": "perception", "folder": team.data_folder})
        if team.name == "vision"
        else team
        for team in spec.teams
    ]
    moved = _with(spec, {name: team.replace("vision", "perception") for name, team in TEAMS.items()})
    assert lost(moved.model_copy(update={"teams": tuple(renamed)})) == []
    # Another profile has no people.
    assert lost(stackspec.load_file("dev-aws").spec) == [*TEAMS]
    # At the end of the stack also its validation, and runs of people who were removed before.
    assert lost(None) == [*TEAMS, "", "gone"]
