"""Requests of a hostile member of a team, decided by the policies of the composed stack `small` on AWS.

Condition keys of requests: service authorization reference (Amazon SageMaker, EC2, S3, KMS, IAM).
"""

import functools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.components.recorder import ACCOUNT
from tests.stacks.composition.composed import STACK, stack_spec
from tests.stacks.iam.documents import Document, documents, real_id

SPEC = stack_spec(("small", "aws"))
REGION = SPEC.region
HERE = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}"
DOMAIN = real_id("aws:sagemaker/domain:Domain", f"{STACK}-studio-domain")
PERSON, TEAM = "eve", "language"
JOB = f"{HERE}:training-job/{STACK}-{PERSON}-x-1"
TAGS = {"stack": STACK, "team": TEAM, "person": PERSON}
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"


@functools.cache
def found() -> tuple[Document, ...]:
    return tuple(documents(SPEC))


def of(role: str) -> list[Mapping[str, Any]]:
    """The policies of a role, by its name."""
    texts = [one.text for one in found() if one.role == role]
    assert texts, role
    return [json.loads(text) for text in texts]


def may(role: str, action: str, resource: str, **context: Any) -> bool:
    return permits(of(role), AccessCheck(action, resource, {**_keys(context)}))


def _keys(context: dict[str, Any]) -> dict[str, Any]:
    tags = context.pop("tags", {})
    named = {f"aws:RequestTag/trainstack:{key}": value for key, value in tags.items()}
    listed = {"aws:TagKeys": tuple(f"trainstack:{key}" for key in tags)} if tags else {}
    return {**{key.replace("__", ":"): value for key, value in context.items()}, **named, **listed}


def subnets() -> tuple[str, ...]:
    """The subnets of the stack, from the limits of jobs."""
    (statement,) = (
        one
        for document in of(f"{STACK}-person-{PERSON}")
        for one in document["Statement"]
        if "sagemaker:CreateTrainingJob" in one["Action"] and one.get("Condition", {}).get("Null")
    )
    return tuple(statement["Condition"]["ForAllValues:StringEquals"]["sagemaker:VpcSubnets"])


def job(**changes: Any) -> dict[str, Any]:
    return {
        "tags": TAGS,
        "sagemaker__InstanceTypes": ("ml.g6.xlarge",),
        "sagemaker__VpcSubnets": subnets(),
        "sagemaker__VpcSecurityGroupIds": job_groups(),
        **changes,
    }


def job_groups() -> tuple[str, ...]:
    (resource,) = (
        arn
        for document in of(f"{STACK}-training-{PERSON}")
        for one in document["Statement"]
        if one["Action"] == ["ec2:CreateNetworkInterface"]
        for arn in one["Resource"]
        if ":security-group/" in arn
    )
    return (resource.rpartition("/")[2],)


def test_a_person_starts_jobs_of_her_own_team() -> None:
    me = f"{STACK}-person-{PERSON}"
    for action, arn in (
        ("sagemaker:CreateTrainingJob", JOB),
        ("sagemaker:CreateHyperParameterTuningJob", f"{HERE}:hyper-parameter-tuning-job/{STACK}-0"),
    ):
        assert may(me, action, arn, **job())
        refused: list[dict[str, Any]] = [
            {"tags": {"stack": STACK, "person": PERSON}},
            {"tags": {**TAGS, "team": "vision"}},
            {"tags": {**TAGS, "person": "ada"}},
            {"tags": {**TAGS, "stack": "other"}},
            {"tags": {**TAGS, "budget-exempt": "because"}},
            {"tags": {}},
            {"sagemaker__VpcSubnets": ("subnet-other",)},
            {"sagemaker__VpcSubnets": (*subnets(), "subnet-other")},
            {"sagemaker__VpcSubnets": ()},
            {"sagemaker__VpcSecurityGroupIds": ("sg-other",)},
            {"sagemaker__InstanceTypes": ("ml.p5.48xlarge",)},
        ]
        assert [one for one in refused if may(me, action, arn, **job(**one))] == []
    assert not may(me, "sagemaker:CreateTrainingJob", f"{HERE}:training-job/{STACK}-ada-x-1", **job())


def test_tags_are_set_at_the_creation_only() -> None:
    me = f"{STACK}-person-{PERSON}"
    for kind, name in (
        ("TrainingJob", f"training-job/{STACK}-{PERSON}-x-1"),
        ("HyperParameterTuningJob", f"hyper-parameter-tuning-job/{STACK}-0"),
        ("Space", f"space/{DOMAIN}/desk"),
        ("App", f"app/{DOMAIN}/desk/JupyterLab/default"),
    ):
        arn, made = f"{HERE}:{name}", f"Create{kind}"
        assert may(me, "sagemaker:AddTags", arn, tags=TAGS, sagemaker__TaggingAction=made)
        assert not may(me, "sagemaker:AddTags", arn, tags=TAGS)
        exempt = {**TAGS, "budget-exempt": "because"}
        assert not may(me, "sagemaker:AddTags", arn, tags=exempt, sagemaker__TaggingAction=made)
        assert not may(me, "sagemaker:DeleteTags", arn, aws__TagKeys=("trainstack:team",))


def space(owner: Any = PERSON, sharing: Any = "Private", **more: Any) -> dict[str, Any]:
    profile = f"{HERE}:user-profile/{DOMAIN}/{owner}"
    return {"sagemaker__OwnerUserProfileArn": profile, "sagemaker__SpaceSharingType": sharing, **more}


def test_a_person_has_spaces_of_her_own() -> None:
    me, desk = f"{STACK}-person-{PERSON}", f"{HERE}:space/{DOMAIN}/desk"
    lab = f"{HERE}:app/{DOMAIN}/desk/JupyterLab/default"
    small = {"sagemaker__InstanceTypes": (SPEC.layout.notebooks.machines[0],)}  # type: ignore[union-attr]
    for action, arn, more in (
        ("sagemaker:CreateSpace", desk, {}),
        ("sagemaker:UpdateSpace", desk, {}),
        ("sagemaker:DeleteSpace", desk, {}),
        ("sagemaker:CreateApp", lab, small),
        ("sagemaker:DeleteApp", lab, {}),
    ):
        assert may(me, action, arn, **space(**more)), action
        assert not may(me, action, arn, **space("ada", **more)), action
        assert not may(me, action, arn, **space(sharing="Shared", **more)), action
        assert not may(me, action, arn, **more), action
        assert not may(me, action, arn.replace(DOMAIN, "d-other"), **space(**more)), action
    for tags in ({"person": "ada"}, {"team": "vision"}, {"stack": "other"}, {"budget-exempt": "because"}):
        assert not may(me, "sagemaker:CreateSpace", desk, tags=tags, **space())
        assert not may(me, "sagemaker:CreateApp", lab, tags=tags, **space(**small))
    assert may(me, "sagemaker:CreateApp", lab, tags=TAGS, **space(**small))
    large = {"sagemaker__InstanceTypes": ("ml.p4d.24xlarge",)}
    assert not may(me, "sagemaker:CreateApp", lab, **space(**large))


def test_a_person_opens_her_own_profile_only() -> None:
    me = f"{STACK}-person-{PERSON}"
    for name, allowed in ((PERSON, True), ("ada", False), ("*", False)):
        arn = f"{HERE}:user-profile/{DOMAIN}/{name}"
        assert may(me, "sagemaker:CreatePresignedDomainUrl", arn) is allowed
    assert may(me, "sagemaker:ListMlflowApps", "*")
    assert not may(me, "sagemaker:UpdateUserProfile", f"{HERE}:user-profile/{DOMAIN}/{PERSON}")
    assert not may(me, "sagemaker:CreateUserProfile", f"{HERE}:user-profile/{DOMAIN}/mallory")


def test_roles_are_passed_to_own_jobs_only() -> None:
    me, passed = f"{STACK}-person-{PERSON}", {"iam__PassedToService": "sagemaker.amazonaws.com"}

    def role(name: str) -> str:
        return f"arn:aws:iam::{ACCOUNT}:role/{name}-0000000"

    for kind in ("training", "evaluation"):
        assert may(me, "iam:PassRole", role(f"{STACK}-{kind}-{PERSON}"), **passed)
        assert not may(me, "iam:PassRole", role(f"{STACK}-{kind}-ada"), **passed)
        assert not may(
            me, "iam:PassRole", role(f"{STACK}-{kind}-{PERSON}"), iam__PassedToService="ec2.amazonaws.com"
        )
    for name in (
        f"{STACK}-person-{PERSON}",
        f"{STACK}-smoke-role",
        f"{STACK}-budgets-function-role",
        "admin",
    ):
        assert not may(me, "iam:PassRole", role(name), **passed)


@pytest.mark.parametrize("kind", ["person", "training", "evaluation", "smoke"])
def test_network_interfaces_are_those_of_the_stack(kind: str) -> None:
    me = f"{STACK}-smoke-role" if kind == "smoke" else f"{STACK}-{kind}-{PERSON}"
    interface = f"{EC2}:network-interface/eni-1"
    inside, outside = ({"ec2__Subnet": f"{EC2}:subnet/{name}"} for name in (subnets()[0], "subnet-other"))
    made = [interface, f"{EC2}:subnet/{subnets()[0]}", f"{EC2}:security-group/{job_groups()[0]}"]
    assert all(may(me, "ec2:CreateNetworkInterface", arn) for arn in made)
    for arn in (f"{EC2}:subnet/subnet-other", f"{EC2}:security-group/sg-other"):
        assert not may(me, "ec2:CreateNetworkInterface", arn)
    for action in (
        "DeleteNetworkInterface",
        "CreateNetworkInterfacePermission",
        "DeleteNetworkInterfacePermission",
    ):
        assert may(me, f"ec2:{action}", interface, **inside)
        assert not may(me, f"ec2:{action}", interface, **outside)
        assert not may(me, f"ec2:{action}", interface)
    for action in ("AttachNetworkInterface", "ModifyNetworkInterfaceAttribute", "RunInstances", "CreateTags"):
        assert not may(me, f"ec2:{action}", interface, **inside)


FORBIDDEN = [
    ("s3:PutBucketPolicy", "arn:aws:s3:::{checkpoints}"),
    ("s3:DeleteBucketPolicy", "arn:aws:s3:::{checkpoints}"),
    ("s3:PutLifecycleConfiguration", "arn:aws:s3:::{checkpoints}"),
    ("s3:DeleteObjectVersion", "arn:aws:s3:::{checkpoints}/teams/language/x"),
    ("s3:GetObject", "arn:aws:s3:::{checkpoints}/teams/vision/x"),
    ("s3:GetObject", "arn:aws:s3:::{checkpoints}/teams/language-2/x"),
    ("s3:PutObject", "arn:aws:s3:::{checkpoints}/teams/vision/x"),
    ("s3:PutObject", "arn:aws:s3:::{checkpoints}/smoke/x"),
    ("s3:PutObject", "arn:aws:s3:::{datasets}/teams/language/x"),
    ("s3:PutObject", "arn:aws:s3:::{artifacts}/audit/budgets/x"),
    ("s3:PutObject", "arn:aws:s3:::{artifacts}/code/ada/0/code.tar.gz"),
    ("s3:PutObject", "arn:aws:s3:::{artifacts}/code/0/code.tar.gz"),
    ("s3:GetObject", "arn:aws:s3:::{artifacts}/code/ada/0/code.tar.gz"),
    ("s3:PutObject", "arn:aws:s3:::{artifacts}/runs/dev-ada-x-1/output/model.tar.gz"),
    ("s3:DeleteObject", "arn:aws:s3:::{artifacts}/runs/dev-ada-x-1/x"),
    ("sts:AssumeRole", "arn:aws:iam::111122223333:role/dev-person-ada-0000000"),
    ("iam:PutRolePolicy", "arn:aws:iam::111122223333:role/dev-person-eve-0000000"),
    ("iam:AttachRolePolicy", "arn:aws:iam::111122223333:role/dev-person-eve-0000000"),
    ("iam:CreatePolicyVersion", "arn:aws:iam::111122223333:policy/dev-rights-eve-notebooks-0000000"),
    ("kms:Decrypt", "{key}"),
    ("kms:PutKeyPolicy", "{key}"),
    ("kms:ScheduleKeyDeletion", "{key}"),
    ("kms:CreateGrant", "{key}"),
    ("sns:Publish", "arn:aws:sns:us-west-2:111122223333:dev-budgets-topic-0000000"),
    ("lambda:InvokeFunction", "arn:aws:lambda:us-west-2:111122223333:function:dev-budgets-function-0000000"),
    ("budgets:ModifyBudget", "arn:aws:budgets::111122223333:budget/dev-person-eve-monthly"),
    ("logs:DeleteLogGroup", "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/TrainingJobs"),
    (
        "logs:PutLogEvents",
        "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/studio:log-stream:d-2/ada/x",
    ),
    ("logs:CreateLogGroup", "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/studio-x"),
    ("logs:CreateLogStream", "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/studio-x:*"),
    ("logs:CreateLogGroup", "arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/TrainingJobsX"),
    ("sagemaker:StopTrainingJob", "arn:aws:sagemaker:us-west-2:111122223333:training-job/dev-ada-x-1"),
    ("sagemaker:CreateProcessingJob", "arn:aws:sagemaker:us-west-2:111122223333:processing-job/x"),
    ("sagemaker:CreateEndpoint", "arn:aws:sagemaker:us-west-2:111122223333:endpoint/x"),
    ("sagemaker:CreateNotebookInstance", "arn:aws:sagemaker:us-west-2:111122223333:notebook-instance/x"),
    ("sagemaker:DeleteMlflowApp", "arn:aws:sagemaker:us-west-2:111122223333:mlflow-app/app-1"),
    ("sagemaker:StartSession", "arn:aws:sagemaker:us-west-2:111122223333:space/d-1/desk"),
]


@pytest.mark.parametrize(("action", "resource"), FORBIDDEN)
@pytest.mark.parametrize("kind", ["person", "training", "evaluation"])
def test_a_member_changes_nothing_of_the_stack_or_of_others(kind: str, action: str, resource: str) -> None:
    buckets = {name: f"{STACK}-storage-{name}-0000000" for name in ("checkpoints", "datasets", "artifacts")}
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"
    arn = resource.format(**buckets, key=key)
    region = {"aws__RequestedRegion": REGION, "aws__SecureTransport": "true"}
    assert not may(f"{STACK}-{kind}-{PERSON}", action, arn, **region)
