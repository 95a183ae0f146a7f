"""Permissions of a person's notebook: own jobs, folders of the team, nothing of other people.

Permissions of the jobs themselves: `job_rights.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from components.aws import iam
from components.aws.teams.team_data import team_rights
from infra.naming import TAG_PREFIX

EXEMPT_TAG: Final = f"{TAG_PREFIX}:budget-exempt"
"""No budget stops a job or notebook with this tag; its value is the reason. Administrators set it."""
CODE: Final = "code"
RUNS: Final = "runs"
MLFLOW: Final = "mlflow"


@dataclass(frozen=True)
class PersonResources:
    """The resources of a stack for people; ARNs and ids, known."""

    region: str
    account: str
    partition: str
    stack: str
    checkpoints: str
    """ARN of the bucket of checkpoints; `datasets` and `artifacts` likewise."""
    datasets: str
    artifacts: str
    key: str
    """ARN of the key of the buckets and of disks."""
    subnets: Sequence[str]
    groups: Sequence[str]
    domain: str
    """Id of the domain."""
    mlflow: str
    """ARN of the MLflow App."""

    def arn(self, service: str, rest: str) -> str:
        """An ARN of this account in this region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{rest}"


@dataclass(frozen=True)
class Who:
    """One person."""

    name: str
    folder: str
    """The team's folder in the buckets."""
    job_machines: Sequence[str]
    notebook_machines: Sequence[str]
    job_roles: Sequence[str]
    """ARNs of the roles of the person's jobs; these may be passed, and no others."""
    training_plans: Sequence[str] = ()
    """ARNs of the training plans whose machines the jobs may use."""


def rights(place: PersonResources, who: Who) -> list[str]:
    """The policies of the role of the notebooks: data, and what it runs.

    Actions and condition keys: SageMaker developer guide, "SageMaker Roles" (execution role of
    CreateTrainingJob, with a VPC) and "Condition keys" of the service authorization reference. A job without
    subnets, or with groups or machines of its own choice, is denied: `ForAllValues` alone also holds for an
    absent key, so each has a `Null`. No key of a disk is required: machines with local disks have none, and
    reject one (botocore 1.44.5 sagemaker/2017-07-24 ResourceConfig, VolumeKmsKeyId).
    """
    data = team_rights(
        region=place.region,
        folder=who.folder,
        checkpoints=place.checkpoints,
        datasets=place.datasets,
        key_arn=place.key,
    )
    return [data, iam.document(*_artifacts(place), *_jobs(place, who), *_notebooks(place, who))]


def _artifacts(place: PersonResources) -> list[Mapping[str, object]]:
    """Code of runs, their results, and files of MLflow, which its clients write themselves."""
    folders = [f"{place.artifacts}/{name}/*" for name in (CODE, RUNS, MLFLOW)]
    listed = {"StringLike": {"s3:prefix": [f"{name}/*" for name in (CODE, RUNS, MLFLOW)]}}
    return [
        iam.allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], folders),
        {**iam.allow(["s3:ListBucket"], [place.artifacts]), "Condition": listed},
        iam.allow(["sagemaker:CallMlflowAppApi", "sagemaker:DescribeMlflowApp"], [place.mlflow]),
        iam.allow(["sagemaker:CreatePresignedMlflowAppUrl"], [place.mlflow]),
    ]


def _jobs(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    mine = place.arn("sagemaker", f"training-job/{place.stack}-{who.name}-*")
    tagged = {
        f"aws:RequestTag/{TAG_PREFIX}:stack": place.stack,
        f"aws:RequestTag/{TAG_PREFIX}:person": who.name,
    }
    limits = {
        "StringEquals": tagged,
        "ForAllValues:StringEquals": {
            "sagemaker:InstanceTypes": list(who.job_machines),
            "sagemaker:VpcSubnets": list(place.subnets),
            "sagemaker:VpcSecurityGroupIds": list(place.groups),
        },
        "Null": {
            "sagemaker:InstanceTypes": "false",
            "sagemaker:VpcSubnets": "false",
            "sagemaker:VpcSecurityGroupIds": "false",
        },
    }
    create = {**iam.allow(["sagemaker:CreateTrainingJob"], [mine]), "Condition": limits}
    handed = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    created = {"StringEquals": {"sagemaker:TaggingAction": "CreateTrainingJob"}}
    return [
        create,
        iam.allow(
            ["sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob", "sagemaker:ListTags"], [mine]
        ),
        {**iam.allow(["sagemaker:AddTags"], [mine]), "Condition": created},
        # Lists have no resource to name; they contain names and times.
        iam.allow(["sagemaker:ListTrainingJobs"], ["*"]),
        {**iam.allow(["iam:PassRole"], list(who.job_roles)), "Condition": handed},
        *_plans(place, who),
        *_searches(place, limits),
        _no_exemption(),
    ]


def _searches(place: PersonResources, limits: Mapping[str, Any]) -> list[Mapping[str, object]]:
    """Searches within the same limits, and their trials: their names are too short to name the person.

    The service gives trials the tags of their search (botocore 1.44.5, CreateHyperParameterTuningJobRequest
    Tags). Condition keys: service authorization reference, CreateHyperParameterTuningJob.
    """
    search, trial = (
        place.arn("sagemaker", f"{kind}/*") for kind in ("hyper-parameter-tuning-job", "training-job")
    )
    hers = {key.replace("RequestTag", "ResourceTag"): value for key, value in limits["StringEquals"].items()}
    seen = [f"sagemaker:{verb}HyperParameterTuningJob" for verb in ("Describe", "Stop")]
    trials = [f"sagemaker:{verb}TrainingJob" for verb in ("Describe", "Stop")]
    made = {"StringEquals": {"sagemaker:TaggingAction": "CreateHyperParameterTuningJob"}}
    listed = [
        "sagemaker:ListHyperParameterTuningJobs",
        "sagemaker:ListTrainingJobsForHyperParameterTuningJob",
    ]
    return [
        {**iam.allow(["sagemaker:CreateHyperParameterTuningJob"], [search]), "Condition": limits},
        {
            **iam.allow([*seen, *trials, "sagemaker:ListTags"], [search, trial]),
            "Condition": {"StringEquals": hers},
        },
        {**iam.allow(["sagemaker:AddTags"], [search]), "Condition": made},
        # Lists of jobs have no resource to name; trials are described by a tag that requests do not carry.
        iam.allow(listed, ["*"]),
    ]


def _plans(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    """Jobs on machines that are reserved by the stack's training plans, and no others.

    CreateTrainingJob then also names the plan and its capacity, beside the job, which must be allowed as
    well. Source: developer guide, "IAM for SageMaker training plans" (plan user role).
    """
    if not who.training_plans:
        return []
    capacity = place.arn("sagemaker", "reserved-capacity/*")
    return [
        iam.allow(["sagemaker:CreateTrainingJob"], [*who.training_plans, capacity]),
        iam.allow(["sagemaker:DescribeTrainingPlan"], list(who.training_plans)),
    ]


def _no_exemption() -> Mapping[str, object]:
    """Denies the exemption of own resources from a budget, also where another policy allows it."""
    tags = {"ForAnyValue:StringEquals": {"aws:TagKeys": [EXEMPT_TAG]}}
    statement = iam.allow(["sagemaker:AddTags", "sagemaker:Create*", "sagemaker:DeleteTags"], ["*"])
    return {**statement, "Effect": "Deny", "Condition": tags}


def _notebooks(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    """Spaces and apps whose owner the person is, on the machines for notebooks.

    Source: SageMaker developer guide, "Amazon SageMaker Studio: space permissions" (keys
    sagemaker:OwnerUserProfileArn and sagemaker:SpaceSharingType).
    """
    profile = place.arn("sagemaker", f"user-profile/{place.domain}/{who.name}")
    space, app = (place.arn("sagemaker", f"{kind}/{place.domain}/*") for kind in ("space", "app"))
    own = {
        "ArnLike": {"sagemaker:OwnerUserProfileArn": profile},
        "StringEquals": {"sagemaker:SpaceSharingType": "Private"},
    }
    # The default app of a space has the machine `system`.
    machines = {"sagemaker:InstanceTypes": [*who.notebook_machines, "system"]}
    started = {**own, "ForAnyValue:StringEquals": machines}
    changes = ["sagemaker:CreateSpace", "sagemaker:UpdateSpace", "sagemaker:DeleteSpace"]
    seen = ["sagemaker:DescribeApp", "sagemaker:DescribeSpace", "sagemaker:ListTags"]
    domain = [place.arn("sagemaker", f"domain/{place.domain}"), profile]
    return [
        {**iam.allow(["sagemaker:CreateApp"], [app]), "Condition": started},
        {**iam.allow(changes, [space]), "Condition": own},
        {**iam.allow(["sagemaker:DeleteApp"], [app]), "Condition": own},
        iam.allow(seen, [space, app]),
        iam.allow(["sagemaker:DescribeDomain", "sagemaker:DescribeUserProfile"], domain),
        iam.allow(["sagemaker:ListApps", "sagemaker:ListSpaces"], ["*"]),
    ]
