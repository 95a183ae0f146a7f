"""Permissions of a person's jobs, by class: training, or evaluation, which reads and keeps results.

Neither starts, stops or describes jobs, nor passes a role: a foreign script inside a job runs with these
permissions (ADR 42).
"""

from collections.abc import Callable, Mapping
from typing import Final

from components.aws import iam
from components.aws.jobs.person_rights import PersonResources, Who, artifact_rights
from components.aws.teams.team_data import reading_rights, team_rights
from infra.job_roles import JobClass


def training_rights(place: PersonResources, who: Who) -> list[str]:
    """Read datasets and code, write and delete checkpoints of the team, write results, use MLflow."""
    where = {"region": place.region, "folder": who.folder, "key_arn": place.key}
    data = team_rights(checkpoints=place.checkpoints, datasets=place.datasets, **where)
    return [data, iam.document(*_results(place, who))]


def evaluation_rights(place: PersonResources, who: Who) -> list[str]:
    """The same without writing or deleting a checkpoint: the evaluated checkpoint stays as it is."""
    where = {"region": place.region, "folder": who.folder, "key_arn": place.key}
    data = reading_rights(checkpoints=place.checkpoints, datasets=place.datasets, **where)
    return [data, iam.document(*_results(place, who))]


RIGHTS: Final[Mapping[JobClass, Callable[[PersonResources, Who], list[str]]]] = {
    "training": training_rights,
    "evaluation": evaluation_rights,
}


def _results(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    """Code and results of runs are readable; the person's own runs are writable."""
    app = iam.allow(["sagemaker:CallMlflowAppApi"], [place.mlflow])
    return [*artifact_rights(place, who, code=False), app]
