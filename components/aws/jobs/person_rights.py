"""Permissions of a person's notebook: own jobs, folders of the team, nothing of other people.

Permissions of the jobs themselves: `job_rights.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from components.aws import iam
from components.aws.teams.team_data import team_rights
from infra.naming import TAG_PREFIX

EXEMPT_TAG: Final = f"{TAG_PREFIX}:budget-exempt"
"""No budget stops a job or notebook with this tag; its value is the reason. Administrators set it."""
CODE: Final = "code"
RUNS: Final = "runs"
MLFLOW: Final = "mlflow"
# Code of jobs of earlier versions, by the SHA-256 digest alone; a person's folder has its digest later.
_EARLIER_CODE: Final = f"{CODE}/{'?' * 64}/*"
_TRAINING = ("sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob")
_TUNING = ("sagemaker:DescribeHyperParameterTuningJob", "sagemaker:StopHyperParameterTuningJob")


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
    team: str
    folder: str
    """The team's folder in the buckets."""
    job_machines: Sequence[str]
    notebook_machines: Sequence[str]
    job_roles: Sequence[str]
    """ARNs of the roles of the person's jobs; these may be passed, and no others."""
    training_plans: Sequence[str] = ()
    """ARNs of the training plans whose machines the jobs may use."""


def rights(place: PersonResources, who: Who) -> list[str]:
    """The policies of the role of the notebooks: data, jobs, and the rest, for which those have no room.

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
    jobs = iam.document(*artifact_rights(place, who, code=True), *_jobs(place, who))
    runs = (*_notebooks(place, who), *_plans(place, who), _tracking(place))
    return [data, jobs, iam.document(*runs, _tagging(place, who), _no_exemption(), _lists())]


def artifact_rights(place: PersonResources, who: Who, *, code: bool) -> list[Mapping[str, object]]:
    """Own code and results, and files of MLflow; results of all are readable. With `code`, code is writable.

    Code of another person is not writable: it would run with that person's rights. Files of MLflow are
    written by its clients, with the permissions of their role. Jobs, without `code`, also read code of
    earlier versions: a restart or the next trial of a search keeps the request of its creation.
    """
    own, mine = f"{CODE}/{who.name}/*", f"{RUNS}/{place.stack}-{who.name}-*"
    read = (own, *([] if code else [_EARLIER_CODE]), f"{RUNS}/*", f"{MLFLOW}/*")
    written = (*([own] if code else []), mine, f"{MLFLOW}/*")
    return [
        iam.allow(["s3:GetObject"], [f"{place.artifacts}/{name}" for name in read]),
        iam.allow(
            ["s3:AbortMultipartUpload", "s3:PutObject"], [f"{place.artifacts}/{name}" for name in written]
        ),
        {
            **iam.allow(["s3:ListBucket"], [place.artifacts]),
            "Condition": {"StringLike": {"s3:prefix": list(read)}},
        },
    ]


def _tracking(place: PersonResources) -> Mapping[str, object]:
    used = ("CallMlflowAppApi", "CreatePresignedMlflowAppUrl", "DescribeMlflowApp")
    return iam.allow([f"sagemaker:{what}" for what in used], [place.mlflow])


def _tags(place: PersonResources, who: Who) -> dict[str, str]:
    """The tags by which budgets count what the person runs, and by which they stop it."""
    return {
        f"{TAG_PREFIX}:stack": place.stack,
        f"{TAG_PREFIX}:team": who.team,
        f"{TAG_PREFIX}:person": who.name,
    }


def _jobs(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    mine = place.arn("sagemaker", f"training-job/{place.stack}-{who.name}-*")
    tagged = {f"aws:RequestTag/{key}": value for key, value in _tags(place, who).items()}
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
    # The limits of a search are those of its trials; neither action is about the other's type of resource.
    created = ["sagemaker:CreateHyperParameterTuningJob", "sagemaker:CreateTrainingJob"]
    search = place.arn("sagemaker", "hyper-parameter-tuning-job/*")
    handed = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    return [
        {**iam.allow(created, [mine, search]), "Condition": limits},
        # By name also jobs that do not exist: a new name is looked for first.
        iam.allow([*_TRAINING, "sagemaker:ListTags"], [mine]),
        _trials(place, who, search),
        {**iam.allow(["iam:PassRole"], list(who.job_roles)), "Condition": handed},
    ]


def _trials(place: PersonResources, who: Who, search: str) -> Mapping[str, object]:
    """Own searches and their trials by their tags: their names are too short to name the person.

    The service gives trials the tags of their search (botocore 1.44.5, CreateHyperParameterTuningJobRequest
    Tags). Not by the tag of the team, which a person may leave.
    """
    kinds = [search, place.arn("sagemaker", "training-job/*")]
    names = (("stack", place.stack), ("person", who.name))
    hers = {f"aws:ResourceTag/{TAG_PREFIX}:{key}": value for key, value in names}
    seen = iam.allow([*_TUNING, *_TRAINING, "sagemaker:ListTags"], kinds)
    return {**seen, "Condition": {"StringEquals": hers}}


def _plans(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    """Jobs on machines that are reserved by the stack's training plans, and no others.

    CreateTrainingJob then also names the plan and its capacity, beside the job, which must be allowed as
    well. Source: developer guide, "IAM for SageMaker training plans" (plan user role).
    """
    if not who.training_plans:
        return []
    capacity = place.arn("sagemaker", "reserved-capacity/*")
    used = ["sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingPlan"]
    return [iam.allow(used, [*who.training_plans, capacity])]


def _no_exemption() -> Mapping[str, object]:
    """Denies the exemption of own resources from a budget, also where another policy allows it."""
    tags = {"ForAnyValue:StringEquals": {"aws:TagKeys": [EXEMPT_TAG]}}
    statement = iam.allow(["sagemaker:AddTags", "sagemaker:Create*", "sagemaker:DeleteTags"], ["*"])
    return {**statement, "Effect": "Deny", "Condition": tags}


def _notebooks(place: PersonResources, who: Who) -> list[Mapping[str, object]]:
    """Spaces and apps whose owner the person is, on the machines for notebooks; a URL for the own profile.

    A tag of the stack has the person's own value or is absent: with another one, budgets would neither count
    nor stop the app. Source: SageMaker developer guide, "Give your users access to spaces"
    (studio-updated-jl-admin-guide-permissions) and "Provide permissions for tagging SageMaker AI resources".
    """
    profile = place.arn("sagemaker", f"user-profile/{place.domain}/{who.name}")
    space, app = (place.arn("sagemaker", f"{kind}/{place.domain}/*") for kind in ("space", "app"))
    own = {
        "ArnLike": {"sagemaker:OwnerUserProfileArn": profile},
        "StringEquals": {"sagemaker:SpaceSharingType": "Private"},
    }
    tags = {f"aws:RequestTag/{key}": value for key, value in _tags(place, who).items()}
    made = {**own, "StringEqualsIfExists": tags}
    # The default app of a space has the machine `system`.
    machines = {"sagemaker:InstanceTypes": [*who.notebook_machines, "system"]}
    started = {**made, "ForAnyValue:StringEquals": machines}
    changes = ["sagemaker:DeleteApp", "sagemaker:DeleteSpace", "sagemaker:UpdateSpace"]
    seen = ["sagemaker:DescribeApp", "sagemaker:DescribeSpace", "sagemaker:ListTags"]
    domain = place.arn("sagemaker", f"domain/{place.domain}")
    return [
        {**iam.allow(["sagemaker:CreateApp"], [app]), "Condition": started},
        {**iam.allow(["sagemaker:CreateSpace"], [space]), "Condition": made},
        {**iam.allow(changes, [space, app]), "Condition": own},
        iam.allow(seen, [space, app]),
        iam.allow(["sagemaker:CreatePresignedDomainUrl", "sagemaker:DescribeUserProfile"], [profile]),
        iam.allow(["sagemaker:DescribeDomain"], [domain]),
    ]


def _tagging(place: PersonResources, who: Who) -> Mapping[str, object]:
    """Tags of what is created, at the creation only: those of a running job stay.

    Source: service authorization reference, AddTags (sagemaker:TaggingAction); the value is the name of the
    creating operation (AmazonSageMakerNotebooksServiceRolePolicy, version 10).
    """
    kinds = {
        f"training-job/{place.stack}-{who.name}-*": "CreateTrainingJob",
        "hyper-parameter-tuning-job/*": "CreateHyperParameterTuningJob",
        f"space/{place.domain}/*": "CreateSpace",
        f"app/{place.domain}/*": "CreateApp",
    }
    created = {"StringEquals": {"sagemaker:TaggingAction": list(kinds.values())}}
    arns = [place.arn("sagemaker", kind) for kind in kinds]
    return {**iam.allow(["sagemaker:AddTags"], arns), "Condition": created}


def _lists() -> Mapping[str, object]:
    """Lists have no resource to name; they contain names and times of everybody's."""
    listed = (
        "Apps",
        "Domains",
        "HyperParameterTuningJobs",
        "MlflowApps",
        "Spaces",
        "TrainingJobs",
        "TrainingJobsForHyperParameterTuningJob",
        "UserProfiles",
    )
    return iam.allow([f"sagemaker:List{what}" for what in listed], ["*"])
