"""What a person's jobs may do, by class: training, or evaluation, which reads and leaves results alone.

Neither starts, stops or describes anything, nor hands a role on: what a script of somebody else does inside
of a job is done with these rights (ADR 42).
"""

from collections.abc import Callable, Mapping
from typing import Final

from components.aws import iam
from components.aws.jobs.person_rights import CODE, MLFLOW, RUNS, Place, Who
from components.aws.teams.team_data import reading_rights, team_rights
from infra.jobs.roles import JobClass


def training_rights(place: Place, who: Who) -> list[str]:
    """Reads datasets and code, writes and deletes checkpoints of the team, leaves results, tells MLflow."""
    where = {"region": place.region, "folder": who.folder, "key_arn": place.key}
    data = team_rights(checkpoints=place.checkpoints, datasets=place.datasets, **where)
    return [data, iam.document(*_results(place, who))]


def evaluation_rights(place: Place, who: Who) -> list[str]:
    """The same without writing or deleting a checkpoint: what is judged stays as it is."""
    where = {"region": place.region, "folder": who.folder, "key_arn": place.key}
    data = reading_rights(checkpoints=place.checkpoints, datasets=place.datasets, **where)
    return [data, iam.document(*_results(place, who))]


RIGHTS: Final[Mapping[JobClass, Callable[[Place, Who], list[str]]]] = {
    "training": training_rights,
    "evaluation": evaluation_rights,
}


def _results(place: Place, who: Who) -> list[Mapping[str, object]]:
    """Code and results of runs are read; written is below the names of the person's own runs.

    Files of MLflow are written by its clients, with the rights of the job.
    """
    read = [f"{place.artifacts}/{name}/*" for name in (CODE, RUNS, MLFLOW)]
    written = [f"{place.artifacts}/{RUNS}/{place.stack}-{who.name}-*", f"{place.artifacts}/{MLFLOW}/*"]
    listed = {"StringLike": {"s3:prefix": [f"{name}/*" for name in (CODE, RUNS, MLFLOW)]}}
    return [
        iam.allow(["s3:GetObject"], read),
        iam.allow(["s3:AbortMultipartUpload", "s3:PutObject"], written),
        {**iam.allow(["s3:ListBucket"], [place.artifacts]), "Condition": listed},
        iam.allow(["sagemaker:CallMlflowAppApi"], [place.mlflow]),
    ]
