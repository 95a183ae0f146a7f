"""The boundary of the roles that deployers on AWS create: what roles of a stack are granted, and no more."""

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from infra.errors import UserError
from infra.stackspec import StackSpec, load_file
from rehearsal.aws.rules.documents import IDENTITY
from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.components.recorder import ACCOUNT as MOCKED
from tests.stacks.composition.composed import deployed
from tests.stacks.iam import judge
from tests.stacks.iam.documents import documents as policies
from tests.stacks.stack_files import LOAD_BALANCER
from tests.trainstack.bootstrap.setup import AGENCY, GITHUB, folder, printed
from tests.trainstack.bootstrap.test_aws import (
    ACCOUNT,
    KEY,
    STACKS,
    Account,
    documents,
    listed,
    names,
    of_type,
    roles_limit,
)
from trainstack.bootstrap.aws.rights import MOST_CHARACTERS

DATABASE = "aws:ResourceTag/aws:rds:primaryDBClusterArn"


def limits(made: Path, stack: str) -> dict[str, Any]:
    """The boundary of the roles that the deployer of a stack creates."""
    (found,) = (
        one["PolicyDocument"]
        for one in of_type(printed(made, *AGENCY), "IAM::ManagedPolicy")
        if one["ManagedPolicyName"] == f"trainstack-{stack}-roles"
    )
    return dict(json.loads(json.dumps(found).replace('{"Fn::GetAtt": ["StateKey", "Arn"]}', f'"{KEY}"')))


def granted(spec: StackSpec) -> Iterator[tuple[str, str]]:
    """Actions and resources of the roles of a stack, also by policies that AWS manages."""
    managed = json.loads(aws_managed_policies_data)
    texts = [one.text.replace(MOCKED, ACCOUNT) for one in policies(spec) if one.type in IDENTITY]
    for asked in deployed(spec).cloud.asked:
        name = str(asked.properties.get("policyArn", "")).rpartition("/")[2]
        if asked.type == "aws:iam/rolePolicyAttachment:RolePolicyAttachment" and name in managed:
            texts.append(json.dumps(managed[name]["Document"]))
    for text in texts:
        for one in json.loads(text)["Statement"]:
            if one["Effect"] == "Allow":
                yield from itertools.product(listed(one["Action"]), listed(one["Resource"]))


@pytest.mark.parametrize("stack", STACKS)
def test_the_boundary_of_roles_has_what_they_are_granted_and_no_data_of_others(
    stack: str, tmp_path: Path
) -> None:
    made = folder(tmp_path, stack)
    boundary = limits(made, stack)
    keys = {
        "iam:PassedToService": "sagemaker.amazonaws.com", "aws:ResourceTag/trainstack:stack": stack,
        f"aws:ResourceTag/kubernetes.io/cluster/{stack}": "owned", "aws:ResourceAccount": ACCOUNT,
        f"aws:ResourceTag/k8s.io/cluster-autoscaler/{stack}": "owned",
        DATABASE: f"arn:aws:rds:eu-west-1:{ACCOUNT}:cluster:{stack}-tracking-mlflow",
    }  # fmt: skip
    found = sorted(set(granted(load_file(stack, made).spec)))
    assert len(found) > 100
    denied = {one for one in found if not permits([boundary], AccessCheck(*one, keys))}
    # AmazonEKSClusterPolicy grants it for routes of nodes, which EKS does not make.
    assert denied <= {("ec2:ModifyInstanceAttribute", "*")}
    for action, resource in (
        ("s3:GetObject", "arn:aws:s3:::other-data/x"),
        ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:other-AbCdEf"),
        ("rds:DeleteDBCluster", f"arn:aws:rds:eu-west-1:{ACCOUNT}:cluster:other"),
        ("logs:GetLogEvents", f"arn:aws:logs:eu-west-1:{ACCOUNT}:log-group:/other:log-stream:x"),
        ("sns:Publish", f"arn:aws:sns:eu-west-1:{ACCOUNT}:other"),
        ("kms:ScheduleKeyDeletion", KEY.replace("0a0a", "0b0b")), ("kms:Decrypt", KEY),
        ("dynamodb:GetItem", f"arn:aws:dynamodb:eu-west-1:{ACCOUNT}:table/other"),
        ("lambda:InvokeFunction", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:other"),
        ("ecr:PutImage", f"arn:aws:ecr:eu-west-1:{ACCOUNT}:repository/other"),
        ("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/x"), ("s3:ListAllMyBuckets", "*"),
        ("ecr:BatchDeleteImage", f"arn:aws:ecr:eu-west-1:{ACCOUNT}:repository/other"),
        ("xray:PutEncryptionConfig", "*"),
        ("elasticloadbalancing:DeleteLoadBalancer", "*"), ("elasticloadbalancing:ModifyListener", "*"),
        ("elasticloadbalancing:AddTags", "*"),
    ):  # fmt: skip
        assert not permits([boundary], AccessCheck(action, resource, {})), (action, resource)
    for alias, allowed in (("alias/trainstack-beta-state", False), (f"alias/{stack}-disks", True)):
        check = AccessCheck("kms:Decrypt", KEY.replace("0a0a", "0b0b"), {"kms:ResourceAliases": (alias,)})
        assert permits([boundary], check) is allowed, alias


@pytest.mark.parametrize("stack", STACKS)
def test_roles_of_a_stack_log_in_as_no_role_of_others(stack: str, tmp_path: Path) -> None:
    boundary = limits(folder(tmp_path, stack), stack)
    here = f"eu-west-1:{ACCOUNT}"
    password = f"arn:aws:secretsmanager:{here}:secret:rds!cluster-0-AbCdEf"
    profile = f"arn:aws:sagemaker:{here}:user-profile/d-0/administrator"
    instance = f"arn:aws:ec2:{here}:instance/i-0a1b"
    template = f"arn:aws:ec2:{here}:launch-template/lt-0a1b"
    clusters = f"arn:aws:rds:{here}:cluster:"
    for action, resource, keys in (
        ("ec2:ModifyInstanceAttribute", instance, {"ec2:Attribute": "UserData"}),
        ("ec2:ModifyInstanceAttribute", instance, {}), ("ec2:CreateReplaceRootVolumeTask", instance, {}),
        ("ec2:AssociateIamInstanceProfile", instance, {}), ("ec2:StopInstances", instance, {}),
        ("ec2:CreateLaunchTemplateVersion", template, {}), ("ec2:ModifyLaunchTemplate", template, {}),
        ("ec2:ModifySnapshotAttribute", f"arn:aws:ec2:{here}:snapshot/snap-0a1b", {}),
        ("secretsmanager:GetSecretValue", password, {}),
        ("secretsmanager:GetSecretValue", password, {DATABASE: f"{clusters}payroll"}),
        ("secretsmanager:PutSecretValue", password, {DATABASE: f"{clusters}{stack}-tracking"}),
        ("sagemaker:CreatePresignedDomainUrl", profile, {}),
        ("sagemaker:CreatePresignedDomainUrl", profile, {"aws:ResourceTag/trainstack:stack": "other"}),
        ("sagemaker:CreatePresignedNotebookInstanceUrl", "*", {"aws:ResourceTag/trainstack:stack": stack}),
        ("sagemaker:UpdateUserProfile", profile, {}), ("sagemaker:CreateNotebookInstance", "*", {}),
    ):  # fmt: skip
        assert not permits([boundary], AccessCheck(action, resource, keys)), (action, keys)
    training = AccessCheck("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:{here}:training-job/x", {})
    assert permits([boundary], training) is (stack == "small-aws"), "SageMaker is for stacks that have it"


@pytest.mark.parametrize("place", [ACCOUNT, "999999999999"])
def test_buckets_are_those_of_the_account(place: str, tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    keys = {"aws:ResourceAccount": place}
    arn = "arn:aws:s3:::small-aws-storage-artifacts-1/x"
    check = AccessCheck("s3:PutObject", arn, keys)
    assert permits([limits(made, "small-aws")], check) is (place == ACCOUNT)
    account = Account(printed(made, *AGENCY), "us-west-2")
    assert account.allows("small-aws", "s3:PutObject", arn, **keys) is (place == ACCOUNT)


def test_launch_templates_of_others_are_not_changed(tmp_path: Path) -> None:
    made = folder(tmp_path, "dev-aws")
    account = Account(printed(made, *AGENCY), "us-east-1")
    arn = f"arn:aws:ec2:us-east-1:{ACCOUNT}:launch-template/lt-0"
    for action in ("CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "DeleteLaunchTemplate"):
        for stack, allowed in (("dev-aws", True), ("other", False)):
            keys = {"aws:ResourceTag/trainstack:stack": stack}
            assert account.allows("dev-aws", f"ec2:{action}", arn, **keys) is allowed, (action, stack)
    tag: dict[str, str | tuple[str, ...]] = {"aws:TagKeys": ("trainstack:stack",)}
    for action, keys_, allowed in (
        ("ec2:CreateTags", tag, False),
        ("ec2:CreateTags", {**tag, "ec2:CreateAction": "CreateLaunchTemplate"}, True),
        ("ec2:DeleteTags", tag, False), ("ec2:DeleteTags", {}, False),
        ("ec2:DeleteTags", {"aws:TagKeys": ("owner",)}, True),
    ):  # fmt: skip
        assert account.allows("dev-aws", action, arn, **keys_) is allowed, (action, keys_)
        assert permits([limits(made, "dev-aws")], AccessCheck(action, arn, keys_)) is allowed, keys_
    assert account.allows(
        "dev-aws", "ec2:CreateTags", arn.replace("launch-template", "security-group"), **tag
    )


@pytest.mark.parametrize("kind", ["user-profile/d-0/administrator", "mlflow-app/app-0"])
def test_the_tag_of_a_stack_is_set_at_the_creation_alone(kind: str, tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws")
    account = Account(printed(made, *AGENCY), "us-west-2")
    boundary, arn = limits(made, "small-aws"), f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:{kind}"
    for key in ("trainstack:stack", "Trainstack:Stack"):
        tag: dict[str, str | tuple[str, ...]] = {"aws:TagKeys": ("owner", key)}
        created = {**tag, "sagemaker:TaggingAction": "CreateUserProfile"}
        for keys, allowed in ((tag, False), (created, True), ({"aws:TagKeys": ("owner",)}, True)):
            assert permits([boundary], AccessCheck("sagemaker:AddTags", arn, keys)) is allowed, keys
            assert account.allows("small-aws", "sagemaker:AddTags", arn, **keys) is allowed, keys
        assert not account.allows("small-aws", "sagemaker:DeleteTags", arn, **tag)
    assert account.allows("small-aws", "sagemaker:DeleteTags", arn, **{"aws:TagKeys": ("owner",)})


def test_domains_profiles_and_apps_of_others_are_not_changed(tmp_path: Path) -> None:
    account = Account(printed(folder(tmp_path, "small-aws"), *AGENCY), "us-west-2")
    kinds = {"Domain": "domain/d-0", "UserProfile": "user-profile/d-0/x", "MlflowApp": "mlflow-app/app-0"}
    for (kind, name), verb in itertools.product(kinds.items(), ("Update", "Delete")):
        arn = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:{name}"
        for stack, allowed in (("small-aws", True), ("small-prod", False)):
            tag = {"aws:ResourceTag/trainstack:stack": stack}
            assert account.allows("small-aws", f"sagemaker:{verb}{kind}", arn, **tag) is allowed, (verb, kind)


@pytest.mark.parametrize("cluster", ["dev-aws", "prod"])
def test_groups_of_other_clusters_are_not_changed(cluster: str, tmp_path: Path) -> None:
    made = folder(
        tmp_path,
        "dev-aws",
        change=("    on:\n", f"    on:\n      load_balancer: {json.dumps(LOAD_BALANCER)}\n"),
    )
    account, boundary = Account(printed(made, *AGENCY), "us-east-1"), limits(made, "dev-aws")
    # EKS gives the groups of a cluster this tag when it makes them.
    tag = {f"aws:ResourceTag/k8s.io/cluster-autoscaler/{cluster}": "owned"}
    group = f"arn:aws:autoscaling:us-east-1:{ACCOUNT}:autoScalingGroup:0:autoScalingGroupName/eks-x"
    for action in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup", "UpdateAutoScalingGroup"):
        check = AccessCheck(f"autoscaling:{action}", group, tag)
        assert permits([boundary], check) is (cluster == "dev-aws"), action
    for action in ("CreateOrUpdateTags", "DeleteTags", "AttachLoadBalancerTargetGroups"):
        assert account.allows("dev-aws", f"autoscaling:{action}", group, **tag) is (cluster == "dev-aws")


def test_roles_of_a_stack_reach_nothing_of_another_stack(tmp_path: Path) -> None:
    made = copies(folder(tmp_path, "dev-aws"), "acme-dev", "acme-prod")
    account, boundary = Account(printed(made, *AGENCY), "us-east-1"), limits(made, "acme-dev")
    secrets = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret"
    for stack, allowed in (("acme-dev", True), ("acme-prod", False)):
        database = f"arn:aws:rds:us-east-1:{ACCOUNT}:cluster:{stack}-tracking"
        for action, resource, keys in (
            ("s3:GetObject", f"arn:aws:s3:::{stack}-storage-datasets-1/x", {}),
            ("rds:DeleteDBCluster", database, {}),
            ("secretsmanager:GetSecretValue", f"{secrets}:{stack}-x", {}),
            ("secretsmanager:GetSecretValue", f"{secrets}:rds!cluster-0-AbCdEf", {DATABASE: database}),
            ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/{stack}-x", {}),
        ):  # fmt: skip
            assert permits([boundary], AccessCheck(action, resource, keys)) is allowed, (action, resource)
        for action in ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy"):
            limit = {"iam:PermissionsBoundary": roles_limit(stack)}
            role = f"arn:aws:iam::{ACCOUNT}:role/acme-dev-x"
            assert account.allows("acme-dev", action, role, **limit) is allowed, (action, stack)
        for action in (
            "CreatePolicyVersion",
            "DeletePolicyVersion",
            "SetDefaultPolicyVersion",
            "DeletePolicy",
        ):
            assert not account.allows("acme-dev", f"iam:{action}", roles_limit(stack)), (action, stack)


@pytest.mark.parametrize("stack", STACKS)
def test_an_account_has_room_for_many_stacks(stack: str, tmp_path: Path) -> None:
    names = [f"acme-environment-{number}" for number in range(10, 30)]
    template = printed(copies(folder(tmp_path, stack), *names), *GITHUB)
    for name, document in documents(template):
        text = json.dumps(document, separators=(",", ":")).replace(
            '{"Fn::GetAtt":["StateKey","Arn"]}', f'"{KEY}"'
        )
        assert len(text) <= MOST_CHARACTERS, name
    attached = [str(one["Roles"]) for one in of_type(template, "IAM::ManagedPolicy") if "Roles" in one]
    assert max(map(attached.count, attached)) <= 10, "a role has at most ten"


def copies(made: Path, *stacks: str) -> Path:
    """The folder, whose one stack file has these names in place of its own."""
    (file,) = made.glob("Pulumi.*.yaml")
    for stack in stacks:
        shutil.copy(file, made / f"Pulumi.{stack}.yaml")
    file.unlink()
    return made


def test_roles_of_a_stack_pass_no_role_of_others(tmp_path: Path) -> None:
    boundary = limits(folder(tmp_path, "small-aws"), "small-aws")
    for role, allowed in (("small-aws-node", True), ("administrator", False), ("deployer-small-aws", False)):
        arn = f"arn:aws:iam::{ACCOUNT}:role/{role}"
        check = AccessCheck("iam:PassRole", arn, {"iam:PassedToService": "sagemaker.amazonaws.com"})
        assert permits([boundary], check) is allowed
        assert not permits([boundary], AccessCheck("iam:PassRole", arn, {"iam:PassedToService": "x"}))
        assert permits([boundary], AccessCheck("sts:AssumeRole", arn, {})) is allowed


@pytest.mark.parametrize("stack", STACKS)
def test_a_deployer_changes_no_role_without_the_boundary(stack: str, tmp_path: Path) -> None:
    made = folder(tmp_path, stack)
    account = Account(printed(made, *AGENCY), load_file(stack, made).spec.region)
    policies, _ = account.roles[f"deployer-{stack}"]
    changes = {
        action
        for policy in policies
        for statement in policy["Statement"]
        for pattern in listed(statement["Action"])
        for action in judge.expanded(pattern)
        if statement["Effect"] == "Allow" and _bounded(action)
    }
    assert {"iam:CreateRole", "iam:UpdateAssumeRolePolicy"} <= changes
    role = f"arn:aws:iam::{ACCOUNT}:role/{stack}-kept-by-another-team"
    for action in changes:
        assert not account.allows(stack, action, role), action
        assert account.allows(stack, action, role, **{"iam:PermissionsBoundary": roles_limit(stack)}), action


def _bounded(action: str) -> bool:
    """Return whether an action changes something that IAM can limit by its permissions boundary."""
    row = judge.details(action)
    keys = {*row["conditionKeys"], *(key for kind in row["resourceTypes"] for key in kind["conditionKeys"])}
    return "iam:PermissionsBoundary" in keys and row["accessLevel"] != "Read"


def test_a_boundary_of_others_is_named_and_kept_from_deployers(tmp_path: Path) -> None:
    other = f"arn:aws:iam::{ACCOUNT}:policy/small-aws-limits"
    made = folder(tmp_path, "small-aws", change=names(other))
    template = printed(made, *AGENCY)
    account = Account(template, load_file("small-aws", made).spec.region)
    for action in ("CreatePolicy", "CreatePolicyVersion", "DeletePolicyVersion", "SetDefaultPolicyVersion"):
        assert not account.allows("small-aws", f"iam:{action}", other), action
    assert account.allows("small-aws", "iam:CreatePolicy", f"{other}-2")
    found = notes(made)
    printed_one = roles_limit("small-aws")
    assert [one for one in found if other in one and printed_one in one]
    own = folder(tmp_path / "own", "small-aws", change=names(printed_one))
    assert not [one for one in notes(own) if printed_one in one]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("iam::aws:policy/AdministratorAccess", "bootstrap-boundary-of-aws"),
        ("iam::aws:policy/job-function/SystemAdministrator", "bootstrap-boundary-of-aws"),
        (f"iam::{ACCOUNT}:policy/trainstack-acme-deployers", "bootstrap-boundary-of-others"),
        (f"iam::{ACCOUNT}:policy/trainstack-acme-prod-roles", "bootstrap-boundary-of-others"),
        (f"iam::{ACCOUNT}:policy/deployer-small-aws-1", "bootstrap-boundary-of-others"),
        ("iam::999999999999:policy/limits", "arn-in-other-account"),
    ],
)
def test_a_boundary_of_another_purpose_is_refused(policy: str, code: str, tmp_path: Path) -> None:
    made = folder(tmp_path, "small-aws", change=names(f"arn:aws:{policy}"))
    for form in ("cloudformation", "terraform"):
        with pytest.raises(UserError) as refused:
            printed(made, *AGENCY, "--form", form)
        assert [one.code for one in refused.value.problems] == [code]


def notes(made: Path) -> list[str]:
    """Notes of the command."""
    return list(json.loads(printed(made, *AGENCY, "--format", "json"))["notes"])


def test_a_deployer_reads_no_parameter_but_those_that_aws_publishes(tmp_path: Path) -> None:
    account = Account(printed(folder(tmp_path, "small-aws"), *AGENCY), "us-west-2")
    for place, allowed in ((":parameter/aws/service/eks", True), (f"{ACCOUNT}:parameter/payroll", False)):
        arn = f"arn:aws:ssm:us-west-2:{place}"
        assert account.allows("small-aws", "ssm:GetParameters", arn) is allowed, arn
