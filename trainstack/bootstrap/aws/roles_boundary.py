"""Limits of the roles of a stack: its own resources where those have names, no change of IAM.

Sources: IAM user guide, "Permissions boundaries for IAM entities"; Service Authorization Reference (resources
of actions).
"""

from collections.abc import Sequence

from infra.catalog.aws.pcs import REGISTER
from infra.naming import login_role
from infra.stackspec import StackSpec
from infra.stackspec.aws.cloud import AwsSpec
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.bootstrap.aws.rights import SECRETS, Statement, allow
from trainstack.preflight.aws.permissions import GROUP_TAG, STACK_TAG, passed_to

_UNNAMED = (
    "autoscaling:Describe*", "cloudwatch:PutMetricData", "ec2:*NetworkInterface*",
    "ec2:*PrivateIpAddresses", "ec2:*SecurityGroup*", "ec2:*Tags", "ec2:*Volume", "ec2:CopyVolumes",
    "ec2:CreateRoute", "ec2:CreateSnapshot", "ec2:DeleteRoute", "ec2:DeleteSnapshot", "ec2:Describe*",
    "ec2:EnableFastSnapshotRestores", "ec2:Get*", "ec2:LockSnapshot", "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage", "ecr:BatchImportUpstreamImage", "ecr:Describe*", "ecr:Get*", "ecr:List*",
    "eks-auth:*", "eks:Describe*", "eks:List*", "elasticfilesystem:Client*", "elasticfilesystem:Describe*",
    "elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup",
    "elasticloadbalancing:Describe*", "fsx:Describe*", "iam:CreateServiceLinkedRole", "iam:Get*", "iam:List*",
    "kms:CreateGrant", "kms:DescribeKey", *SECRETS, "logs:Describe*", "xray:Get*",
    "xray:PutTelemetryRecords", "xray:PutTraceSegments",
)  # fmt: skip
"""Actions of a stack's roles on resources that have ids in place of names, and lists.

Of EC2, none that runs code on instances of others with their roles: user data, root volumes, versions of
launch templates. AmazonEKSClusterPolicy has ec2:ModifyInstanceAttribute for routes of nodes alone, which EKS
does not make (cloud-provider-aws pkg/providers/v1/aws_routes.go, CreateRoute). Its key `ec2:Attribute` is no
limit: some requests lack it.
"""
_GROUPS = (
    "autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup",
    "autoscaling:UpdateAutoScalingGroup",
)  # fmt: skip
_SAGEMAKER = "sagemaker.amazonaws.com"
_JOBS = (
    "sagemaker:AddTags", "sagemaker:CreateApp", "sagemaker:CreateHyperParameterTuningJob",
    "sagemaker:CreateSpace", "sagemaker:CreateTrainingJob", "sagemaker:DeleteApp",
    "sagemaker:DeleteEndpoint", "sagemaker:DeleteSpace", "sagemaker:Describe*", "sagemaker:List*",
    "sagemaker:Stop*Job", "sagemaker:UpdateSpace",
)  # fmt: skip
"""Actions of roles of stacks with SageMaker."""
_TAGGED_JOBS = (
    "sagemaker:CallMlflowAppApi", "sagemaker:CreatePresignedDomainUrl",
    "sagemaker:CreatePresignedMlflowAppUrl",
)  # fmt: skip
"""Actions on profiles and MLflow apps, which have the tag of their stack."""
_NAMED = ("budgets:*", "logs:*", "rds:*", "s3:*", "secretsmanager:*", "sns:*", "ssm:GetParameter*")
_NAMED_RESOURCES = (
    "arn:aws:budgets::{account}:budget/{stack}-*",
    "arn:aws:logs:*:{account}:log-group:/*/{stack}-*",
    "arn:aws:logs:*:{account}:log-group:/*/{stack}/*",
    "arn:aws:rds:*:{account}:*:{stack}-*",
    "arn:aws:s3:::{stack}-*",
    "arn:aws:secretsmanager:*:{account}:secret:{stack}-*",
    "arn:aws:sns:*:{account}:{stack}-*",
    "arn:aws:ssm:*:{account}:parameter/AmazonCloudWatch-*",
)
"""Resources of these actions. Services prescribe the names of those without the stack's name."""
_NODES_OF_SLURM = (
    REGISTER, "ec2messages:*", "ssm:DescribeAssociation", "ssm:DescribeDocument",
    "ssm:GetDeployablePatchSnapshotForInstance", "ssm:GetDocument", "ssm:GetManifest", "ssm:ListAssociations",
    "ssm:ListInstanceAssociations", "ssm:PutComplianceItems", "ssm:PutConfigurePackageResult",
    "ssm:PutInventory", "ssm:UpdateAssociationStatus", "ssm:UpdateInstanceAssociationStatus",
    "ssm:UpdateInstanceInformation", "ssmmessages:*",
)  # fmt: skip
"""Actions of nodes of Slurm: to join their cluster, and those of AmazonSSMManagedInstanceCore without its
reads of parameters, which can be secrets of others (AWS managed policy reference)."""
_DATABASE = "aws:ResourceTag/aws:rds:primaryDBClusterArn"
"""Tag by RDS of a secret that it keeps: its cluster (Aurora user guide, "Password management")."""


def statements(account: str, spec: StackSpec) -> list[Statement]:
    """Statements of the most that roles of a stack can be allowed."""
    # Roles of a stack begin with its name: a role that another team keeps is never passed to a service.
    own = [f"arn:aws:iam::{account}:role/{spec.name}-*"]
    services = passed_to(spec)
    passed = {"StringEquals": {"iam:PassedToService": services}}
    # RDS names the secrets of passwords by ids.
    secrets = f"arn:aws:secretsmanager:*:{account}:secret:rds!cluster-*"
    clusters = {"StringLike": {_DATABASE: f"arn:aws:rds:*:cluster:{spec.name}-*"}}
    # EKS tags balancers, listeners and target groups with their cluster at their creation (cloud-provider-aws
    # pkg/providers/v1/aws_loadbalancer.go).
    balancers = {"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{spec.name}": "owned"}}
    created = {"Null": {"elasticloadbalancing:CreateAction": "false"}}
    found = [
        allow(_UNNAMED, ["*"]),
        {**allow(_GROUPS, ["*"]), "Condition": {"StringEquals": {GROUP_TAG.format(spec.name): "owned"}}},
        {**allow(["elasticloadbalancing:*"], ["*"]), "Condition": balancers},
        {**allow(["elasticloadbalancing:AddTags"], ["*"]), "Condition": created},
        allow(_NAMED, [pattern.format(account=account, stack=spec.name) for pattern in _NAMED_RESOURCES]),
        {**allow(["secretsmanager:GetSecretValue"], [secrets]), "Condition": clusters},
        {**allow(["iam:PassRole"], own), "Condition": passed},
        allow(["sts:AssumeRole"], own),
    ]
    if isinstance(spec.layout, SlurmLayout):
        found.append(allow(_NODES_OF_SLURM, ["*"]))
    return [*found, *_sagemaker(account, spec.name)] if _SAGEMAKER in services else found


def logins(account: str, stack: str, clusters: Sequence[StackSpec]) -> list[Statement]:
    """Statements for the dispatcher of a manager, which logs in to its clusters, also in other accounts.

    In the account of the manager, roles of the large stack can be assumed anyway: a pattern is shorter.
    """
    places = {one.name: one.on.account_id for one in clusters if isinstance(one.on, AwsSpec)}
    roles = [
        f"arn:aws:iam::{place}:role/{login_role(name)}" for name, place in places.items() if place != account
    ]
    if account in places.values():
        roles.insert(0, f"arn:aws:iam::{account}:role/{stack}-*")
    # The session tags of EKS Pod Identity are transitive (EKS user guide, "pod-id-abac").
    return [allow(["sts:AssumeRole", "sts:TagSession"], roles)] if roles else []


def _sagemaker(account: str, stack: str) -> list[Statement]:
    """Statements for a stack with SageMaker: URLs that log in as a person are limited by the tag."""
    tagged = {"StringEquals": {STACK_TAG: stack}}
    return [
        allow(_JOBS, ["*"]),
        {**allow(_TAGGED_JOBS, ["*"]), "Condition": tagged},
        allow(["logs:*"], [f"arn:aws:logs:*:{account}:log-group:/aws/sagemaker/*"]),
    ]
