"""The setup of an AWS account: valid by AWS's schemas, and enough for the stacks, not for more."""

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.stackspec import load_file
from rehearsal.dataplane.aws.iam_policies import AccessCheck, permits
from tests.stacks.composition.composed import deployed
from tests.stacks.iam import judge
from tests.test_structure import ROOT
from tests.trainstack.bootstrap.setup import AGENCY, GITHUB, folder, printed
from trainstack.bootstrap.aws.preflight_rights import RIGHTS
from trainstack.bootstrap.aws.rights import MOST_CHARACTERS
from trainstack.preflight.aws.permissions import STACK_TAG, passed_to, simulated

_lint: Any = importlib.import_module("cfnlint.api")
ACCOUNT = "123456789012"
CHANGES_OF_USERS = (
    "CreateUser",
    "UpdateLoginProfile",
    "AttachUserPolicy",
    "PutUserPolicy",
    "CreateAccessKey",
)
STACKS = ("small-aws", "small-eks-aws", "dev-aws")
# ARNs of resources by the names that the program gives, or the engine makes from them.
_ARNS: Mapping[str, str] = {
    "aws:iam/role:Role": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    "aws:iam/policy:Policy": f"arn:aws:iam::{ACCOUNT}:policy/{{}}",
    "aws:s3/bucket:Bucket": "arn:aws:s3:::{}",
    "aws:lambda/function:Function": f"arn:aws:lambda:{{region}}:{ACCOUNT}:function:{{}}",
    "aws:sns/topic:Topic": f"arn:aws:sns:{{region}}:{ACCOUNT}:{{}}",
    "aws:cloudwatch/logGroup:LogGroup": f"arn:aws:logs:{{region}}:{ACCOUNT}:log-group:{{}}:*",
    "aws:rds/cluster:Cluster": f"arn:aws:rds:{{region}}:{ACCOUNT}:cluster:{{}}",
    "aws:eks/cluster:Cluster": f"arn:aws:eks:{{region}}:{ACCOUNT}:cluster/{{}}",
}


def roles_limit(stack: str) -> str:
    """The boundary of roles of a stack."""
    return f"arn:aws:iam::{ACCOUNT}:policy/trainstack-{stack}-roles"


def names(boundary: str) -> tuple[str, str]:
    """A change of a stack file: its boundary."""
    return "    on:\n", f"    on:\n      permissions_boundary: {boundary}\n"


class Account:
    """The emulated account in which an administrator has created the template."""

    def __init__(self, template: str, region: str) -> None:
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        with mock_aws():
            formation = boto3.client("cloudformation", region, **keys)
            formation.create_stack(
                StackName="setup", TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"]
            )
            (stack,) = formation.describe_stacks(StackName="setup")["Stacks"]
            assert stack["StackStatus"] == "CREATE_COMPLETE"
            self.outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
            self._iam: Any = boto3.client("iam", region, **keys)
            self.roles = {role["RoleName"]: self._rights(role["RoleName"]) for role in self._roles()}
            # The emulation of CloudFormation leaves out the policy of the bucket, its settings and budgets.
            (self.settings,) = of_type(template, "S3::Bucket")
            self.bucket = self.settings["BucketName"]
            (self.bucket_policy,) = (one["PolicyDocument"] for one in of_type(template, "S3::BucketPolicy"))
            (self.budget,) = (one["Budget"] for one in of_type(template, "Budgets::Budget"))

    def _roles(self) -> list[dict[str, Any]]:
        return list(self._iam.list_roles()["Roles"])

    def _rights(self, role: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Policies of a role, and its boundary."""
        attached = self._iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        boundary = self._iam.get_role(RoleName=role)["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"]
        return [self._policy(one["PolicyArn"]) for one in attached], self._policy(boundary)

    def _policy(self, arn: str) -> dict[str, Any]:
        version = self._iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = self._iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]
        return dict(found["Document"])

    def allows(self, stack: str, action: str, resource: str, **keys: str | tuple[str, ...]) -> bool:
        """The deployer's policies and its boundary both allow a request."""
        policies, boundary = self.roles[f"deployer-{stack}"]
        check = AccessCheck(action, resource, keys)
        return permits(policies, check) and permits([boundary], check)


def of_type(template: str, kind: str) -> Iterator[dict[str, Any]]:
    """Properties of the template's resources of a type."""
    for one in json.loads(template)["Resources"].values():
        if one["Type"] == f"AWS::{kind}":
            yield one["Properties"]


def documents(template: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in json.loads(template)["Resources"].items():
        if one["Type"] == "AWS::IAM::ManagedPolicy":
            yield name, one["Properties"]["PolicyDocument"]


@pytest.mark.parametrize("trust", [AGENCY, GITHUB], ids=["agency", "github"])
@pytest.mark.parametrize("stack", STACKS)
def test_the_template_fits_the_schemas_of_aws(stack: str, trust: tuple[str, ...], tmp_path: Path) -> None:
    made = folder(tmp_path, stack)
    template = printed(made, *trust)
    found = _lint.lint(template, config=_lint.ManualArgs(regions=[load_file(stack, made).spec.region]))
    assert [str(one) for one in found] == []
    assert len(template) < 51_200, "longer templates need a bucket (CloudFormation quotas)"
    for name, document in documents(template):
        text = json.dumps(document).replace('{"Fn::GetAtt": ["StateKey", "Arn"]}', f'"{KEY}"')
        assert judge.grammar(text) == "", name
        known = [one for one in json.loads(text)["Statement"] if "Action" in one]
        assert list(judge.findings(json.dumps({"Statement": known}))) == [], name
        assert len(json.dumps(document, separators=(",", ":"))) <= MOST_CHARACTERS
    attached = [str(one["Roles"]) for one in of_type(template, "IAM::ManagedPolicy") if "Roles" in one]
    assert 2 <= max(map(attached.count, attached)) <= 10, "a role has at most ten"


KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/0a0a0a0a-0000-0000-0000-000000000000"


@pytest.mark.parametrize("bounded", [False, True], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("stack", STACKS)
def test_the_deployer_of_the_template_may_do_what_the_stack_takes_and_no_more(
    stack: str, bounded: bool, tmp_path: Path
) -> None:
    made = folder(tmp_path, stack, change=names(roles_limit(stack)) if bounded else ("", ""))
    spec = load_file(stack, made).spec
    account = Account(printed(made, *GITHUB), spec.region)
    # Without a boundary in its file, a stack gets the one of the template.
    limit = {
        "iam:PermissionsBoundary": roles_limit(stack),
        "iam:PassedToService": passed_to(spec)[0],
        STACK_TAG: stack,
        f"aws:ResourceTag/k8s.io/cluster-autoscaler/{stack}": "owned",
    }
    for arn, actions in simulated(spec).items():
        one = re.sub(r"0{7}", "0a1b2c3", arn)
        assert [name for name in actions if not account.allows(stack, name, one, **limit)] == []
    types = set()
    for asked in deployed(spec).cloud.asked:
        if asked.type in _ARNS:
            types.add(asked.type)
            name = (
                asked.properties.get("name")
                or f"{asked.properties.get('namePrefix', asked.name + '-')}0a1b2c3"
            )
            arn = _ARNS[asked.type].format(name, region=spec.region)
            assert account.allows(stack, _creation(asked.type), arn, **limit), arn
    assert len(types) >= 5
    for action, resource in (
        ("iam:CreateRole", f"arn:aws:iam::{ACCOUNT}:role/other-node"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/administrator"),
        ("iam:PutRolePolicy", f"arn:aws:iam::{ACCOUNT}:role/deployer-{stack}"),
        *((f"iam:{action}", f"arn:aws:iam::{ACCOUNT}:user/x") for action in CHANGES_OF_USERS),
        ("iam:CreatePolicyVersion", f"arn:aws:iam::{ACCOUNT}:policy/deployer-{stack}-1"),
        ("s3:DeleteBucket", "arn:aws:s3:::other-data"),
        ("s3:DeleteBucket", f"arn:aws:s3:::{account.bucket}"),
        ("s3:DeleteObjectVersion", f"arn:aws:s3:::{account.bucket}/.pulumi/stacks/acme/x.json"),
        ("s3:PutBucketPolicy", f"arn:aws:s3:::{account.bucket}"),
        ("s3:GetObject", f"arn:aws:s3:::{account.bucket}/.pulumi/stacks/acme/other.json"),
        ("s3:PutObject", f"arn:aws:s3:::{account.bucket}/.pulumi/stacks/acme/{stack}-2.json"),
        ("s3:DeleteObject", f"arn:aws:s3:::{account.bucket}/.pulumi/locks/organization/acme/other/1.json"),
        ("organizations:LeaveOrganization", "*"),
    ):
        assert not account.allows(stack, action, resource, **limit), (action, resource)
        if action.removeprefix("iam:") in CHANGES_OF_USERS:
            assert not permits([account.roles[f"deployer-{stack}"][1]], AccessCheck(action, resource)), action
    new = f"arn:aws:iam::{ACCOUNT}:role/{stack}-x"
    # A role of an earlier deployment without the boundary gets it.
    for action in (
        "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy", "iam:AttachRolePolicy"
    ):  # fmt: skip
        assert account.allows(stack, action, new, **limit)
        other = {"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/{stack}-own"}
        assert not account.allows(stack, action, new) and not account.allows(stack, action, new, **other)
    assert not account.allows(stack, "iam:DeleteRolePermissionsBoundary", new, **limit)
    for service in (*passed_to(spec), "glue.amazonaws.com", "cloudformation.amazonaws.com"):
        passed = account.allows(stack, "iam:PassRole", new, **{"iam:PassedToService": service})
        assert passed is (service in passed_to(spec)), service


def _named(asked: Any) -> str:
    """The name that a program gives, or that the engine makes."""
    prefix = asked.properties.get("namePrefix", f"{asked.name}-")
    return str(asked.properties.get("name") or f"{prefix}0a1b2c3")


def _creation(token: str) -> str:
    service, kind = token.split(":")[1].split("/", maxsplit=1)[0], token.rpartition(":")[2]
    names = {"cloudwatch": "logs:CreateLogGroup", "rds": "rds:CreateDBCluster"}
    return names.get(service) or f"{service}:Create{kind}"


def test_the_state_is_encrypted_versioned_private_and_takes_locks(tmp_path: Path) -> None:
    account = Account(printed(folder(tmp_path, "small-aws"), *AGENCY), "us-west-2")
    settings = account.settings
    assert account.bucket == f"trainstack-acme-{ACCOUNT}"
    assert settings["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = settings["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    public = settings["PublicAccessBlockConfiguration"]
    assert set(public.values()) == {True} and len(public) == 4
    lock = f"arn:aws:s3:::{account.bucket}/.pulumi/locks/organization/acme/small-aws/1.json"
    for action in ("s3:PutObject", "s3:GetObject", "s3:DeleteObject"):
        assert account.allows("small-aws", action, lock)
        secure = [AccessCheck(action, lock, {"aws:SecureTransport": one}) for one in ("true", "false")]
        everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        assert [permits([everything, account.bucket_policy], one) for one in secure] == [True, False]
    assert account.outputs["Backend"] == f"s3://{account.bucket}?region=us-west-2"
    assert account.budget["BudgetLimit"]["Amount"] == 5000


def test_a_deployer_reaches_the_state_and_the_secrets_of_its_own_stack(tmp_path: Path) -> None:
    account = Account(printed(folder(tmp_path, "small-aws"), *AGENCY), "us-west-2")
    for name in (
        "stacks/acme/small-aws.json", "stacks/acme/small-aws.json.bak", "stacks/acme/small-aws.pulumi-tags",
        "history/acme/small-aws/small-aws-1.history.json", "backups/acme/small-aws/small-aws.1.json",
        "locks/organization/acme/small-aws/1.json", "meta.yaml",
    ):  # fmt: skip
        for action in ("s3:GetObject", "s3:PutObject"):
            assert account.allows("small-aws", action, f"arn:aws:s3:::{account.bucket}/.pulumi/{name}"), name
    (key,) = {
        resource
        for policy in account.roles["deployer-small-aws"][0]
        for statement in policy["Statement"]
        for resource in statement["Resource"]
        if "kms:Encrypt" in statement["Action"]
    }
    for stack, allowed in (("small-aws", True), ("prod", False)):
        context = {"kms:EncryptionContext:stack": stack}
        assert account.allows("small-aws", "kms:Decrypt", key, **context) is allowed
    other = KEY.replace("us-east-1", "us-west-2")
    states: dict[str, tuple[str, ...]] = {"kms:ResourceAliases": ("alias/trainstack-beta-state",)}
    for action in ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant", "kms:Decrypt"):
        for keys, allowed in ((states, False), ({"kms:ResourceAliases": ("alias/small-aws-x",)}, True)):
            assert account.allows("small-aws", action, other, **keys) is allowed, (action, keys)
    bucket = "arn:aws:s3:::trainstack-beta-123456789012"
    for action, resource in (
        ("s3:PutBucketPolicy", bucket), ("s3:DeleteBucket", bucket), ("s3:PutBucketVersioning", bucket),
        ("s3:PutLifecycleConfiguration", bucket), ("s3:DeleteObjectVersion", f"{bucket}/.pulumi/meta.yaml"),
        *(
            (f"iam:{action}", f"arn:aws:iam::{ACCOUNT}:role/{role}")
            for action in ("CreateRole", "TagRole", "UntagRole", "UpdateRoleDescription", "PutRolePolicy")
            for role in ("deployer-x", "trainstack-beta-preview")
        ),
    ):  # fmt: skip
        check = AccessCheck(action, resource, {"aws:ResourceAccount": ACCOUNT})
        assert not permits([account.roles["deployer-small-aws"][1]], check), (action, resource)
    s3 = {"kms:ViaService": "s3.us-west-2.amazonaws.com"}
    assert account.allows("small-aws", "kms:GenerateDataKey", key, **s3)
    assert account.allows("small-aws", "organizations:DescribeOrganization", "*")


@pytest.mark.parametrize("stack", STACKS)
def test_previews_and_nightly_checks_read_and_change_nothing(stack: str, tmp_path: Path) -> None:
    made = folder(tmp_path, stack)
    account = Account(printed(made, *GITHUB), load_file(stack, made).spec.region)
    state = f"arn:aws:s3:::{account.bucket}/.pulumi/stacks/acme/{stack}.json"
    for name in ("preview", "nightly"):
        policies, boundary = account.roles[f"trainstack-acme-{name}"]
        for action, resource, allowed in (
            ("s3:GetObject", state, True), ("s3:PutObject", state, False), ("s3:DeleteObject", state, False),
            ("ec2:DescribeVpcs", "*", True), ("kms:Decrypt", KEY, False),
            ("s3:GetObject", "arn:aws:s3:::another/key", False),
            ("secretsmanager:GetSecretValue", "*", False), ("iam:SimulatePrincipalPolicy", "*", False),
            ("cloudtrail:DescribeTrails", "*", name == "nightly"),
        ):  # fmt: skip
            check = AccessCheck(action, resource, {})
            assert (permits(policies, check) and permits([boundary], check)) is allowed, (name, action)
        asked = {one for policy in policies for part in policy["Statement"] for one in part["Action"]}
        reads = r"[a-z0-9-]+:(BatchGet|Describe|Get|List|View)\w+|kms:Decrypt"
        assert [one for one in sorted(asked) if not re.fullmatch(reads, one)] == []


@pytest.mark.parametrize("stack", STACKS)
def test_roles_of_a_stack_are_for_services_to_which_a_deployer_passes_them(
    stack: str, tmp_path: Path
) -> None:
    spec = load_file(stack, folder(tmp_path, stack)).spec
    trusted = {
        service
        for asked in deployed(spec).cloud.asked
        if asked.type == "aws:iam/role:Role"
        for statement in json.loads(asked.properties["assumeRolePolicy"])["Statement"]
        for service in listed(statement["Principal"].get("Service", []))
    }
    # The agent of EKS and the called services are named beside the principals of roles.
    assert trusted and trusted <= {*passed_to(spec)} <= trusted | {"eks.amazonaws.com"}


def listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else [*value]


def test_the_setup_of_the_state_outlives_the_stack_of_cloudformation(tmp_path: Path) -> None:
    resources = json.loads(printed(folder(tmp_path, "small-aws"), *AGENCY))["Resources"]
    kept = {name for name, one in resources.items() if one.get("DeletionPolicy") == "Retain"}
    assert kept == {"StateKey", "StateKeyAlias", "StateBucket", "StateBucketPolicy"}


def test_a_template_that_is_too_long_with_indentation_has_none(tmp_path: Path) -> None:
    made = folder(tmp_path, "small-eks-aws")
    short = printed(made, *AGENCY)
    second = (made / "Pulumi.small-eks-aws.yaml").read_text()
    (made / "Pulumi.small-eks2-aws.yaml").write_text(second)
    long = printed(made, *AGENCY)
    assert ("\n " in short, "\n " in long) == (True, False)
    assert len({*json.loads(short)["Resources"]} - {*json.loads(long)["Resources"]}) == 0


def test_a_deployer_has_the_rights_that_the_page_of_preflight_lists() -> None:
    page = (ROOT / "docs/reference/preflight.md").read_text().partition("### Required rights")[2]
    document = json.loads(page.partition("```json")[2].partition("```")[0])
    assert tuple(document["Statement"][0]["Action"]) == RIGHTS
