"""Policies of a stack's deployer, from the catalog's table of permissions."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from infra.stackspec import StackSpec
from infra.stackspec.slurm.layout import SlurmLayout
from trainstack.bootstrap.aws.preflight_rights import RIGHTS
from trainstack.preflight.aws.permissions import GROUP_TAG, STACK_TAG, by_resource, fields_of, passed_to

Statement = dict[str, Any]

MOST_CHARACTERS: Final = 6144
"""Of a managed policy, without white space; a role has at most ten (IAM user guide, "IAM and STS quotas")."""
_REFERENCES: Final = 200
"""Characters by which the ARN of the state's key is longer than references to it."""
_LOG_GROUPS = (
    "/aws/eks/{stack}/*", "/aws/fsx/{stack}-*", "/aws/lambda/{stack}-*", "/aws/rds/cluster/{stack}-*",
    "/aws/sagemaker/*", "/trainstack/{stack}-*",
)  # fmt: skip
"""Log groups have names that services prescribe; those of SageMaker belong to the account."""
SECRETS: Final = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*")
_SCHEDULER: Final = "/aws/vendedlogs/pcs/"
"""Beginning of the log groups of schedulers of Slurm."""
PUBLIC_PARAMETERS: Final = "arn:aws:ssm:*::parameter/aws/*"
"""Images of machines, which AWS publishes."""
_AT_ONCE = 100
"""Actions of a statement, so that statements can be divided among policies."""
_BOUNDED = frozenset({
    "iam:AttachRolePolicy", "iam:CreateRole", "iam:DeleteRole", "iam:DeleteRolePolicy",
    "iam:DetachRolePolicy", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy",
    "iam:UpdateAssumeRolePolicy", "iam:UpdateRole", "iam:UpdateRoleDescription",
})  # fmt: skip
"""Actions that IAM can limit by the boundary of the role (Service Authorization Reference).

`iam:PutRolePermissionsBoundary` is for roles of an earlier deployment: its key is the boundary in the request
(IAM user guide, "Permissions boundaries for IAM entities", delegation).
"""

_TAGGED = frozenset({
    "ec2:CreateLaunchTemplateVersion", "ec2:DeleteLaunchTemplate", "ec2:ModifyLaunchTemplate",
    "pcs:CreateComputeNodeGroup", "pcs:CreateQueue", "pcs:DeleteCluster", "pcs:DeleteComputeNodeGroup",
    "pcs:DeleteQueue", "pcs:UpdateCluster", "pcs:UpdateComputeNodeGroup", "pcs:UpdateQueue",
    "sagemaker:DeleteDomain", "sagemaker:DeleteMlflowApp", "sagemaker:DeleteUserProfile",
    "sagemaker:UpdateDomain", "sagemaker:UpdateMlflowApp", "sagemaker:UpdateUserProfile",
})  # fmt: skip
"""Actions on resources with the tag of the stack.

Groups that follow the latest or default version start it with its role, without a check of who changed it
(EC2 Auto Scaling user guide, "Control Amazon EC2 launch template usage").
"""
_OF_GROUPS = frozenset({
    "autoscaling:AttachLoadBalancerTargetGroups", "autoscaling:CreateOrUpdateTags",
    "autoscaling:DeleteTags", "autoscaling:DetachLoadBalancerTargetGroups",
})  # fmt: skip
"""Actions on Auto Scaling groups that EKS made for the stack's cluster."""


def statements(spec: StackSpec, boundary: str, *, guest: bool = False) -> list[Statement]:
    """Rights to deploy a stack, on its own resources where they have names, and to run `preflight`.

    `boundary`: ARN that every role must have that the deployer creates or changes. `guest`: it is a cluster
    whose manager is in another account.
    """
    fields = fields_of(spec)
    resources: dict[str, set[str]] = defaultdict(set)
    for arn, actions in by_resource(spec, guest=guest).items():
        patterns = [pattern.format(**fields) for pattern in patterns_of(arn)]
        for action in actions:
            resources[action].update(patterns)
    resources["iam:PutRolePermissionsBoundary"] = resources["iam:CreateRole"]
    for action in RIGHTS:
        resources[action] = {PUBLIC_PARAMETERS if action == "ssm:GetParameters" else "*"}
    slurm = [*_of_slurm(spec, resources, fields)] if isinstance(spec.layout, SlurmLayout) else []
    group = GROUP_TAG.format(spec.name)
    grouped: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for action in sorted(resources):
        key = "iam:PassedToService" if action == "iam:PassRole" else ""
        key = "iam:PermissionsBoundary" if action in _BOUNDED else key
        key = STACK_TAG if action in _TAGGED else key
        key = group if action in _OF_GROUPS else key
        grouped[key, *sorted(resources[action])].append(action)
    values = {
        "iam:PassedToService": passed_to(spec), "iam:PermissionsBoundary": boundary, STACK_TAG: spec.name,
        group: "owned",
    }  # fmt: skip
    found = [
        _statement(actions[start : start + _AT_ONCE], patterns, {key: values[key]} if key else {})
        for (key, *patterns), actions in sorted(grouped.items())
        for start in range(0, len(actions), _AT_ONCE)
    ]
    return [*found, *slurm]


def _of_slurm(
    spec: StackSpec, resources: dict[str, set[str]], fields: Mapping[str, str]
) -> Iterator[Statement]:
    """Statements about machines by the tag of the stack; also adds the log group of the scheduler.

    Documents have no tag: a command is allowed by its document, and by the tag of its machines. Clusters are
    known by their tag, so that it is not put on those of others; at creation a cluster has none yet.
    """
    group = f"arn:aws:logs:{fields['region']}:{fields['account']}:log-group:{_SCHEDULER}{spec.name}"
    for action, arns in resources.items():
        if action.startswith("logs:") and any(":log-group:" in arn for arn in arns):
            arns |= {group, f"{group}:*"}
    own = {"StringEquals": {STACK_TAG: spec.name}}
    documents = resources.pop("ssm:SendCommand", set())
    machines = {arn for arn in documents if ":instance/" in arn}
    if machines:
        yield allow(["ssm:SendCommand"], sorted(documents - machines))
        yield {**allow(["ssm:SendCommand"], sorted(machines)), "Condition": own}
    others = {"StringNotEquals": {STACK_TAG: spec.name}, "Null": {STACK_TAG: "false"}}
    clusters = sorted(resources["pcs:TagResource"])
    denied = allow(["pcs:TagResource", "pcs:UntagResource"], clusters)
    yield {**denied, "Effect": "Deny", "Condition": others}


def merged(found: Iterable[Statement]) -> list[Statement]:
    """The same rights in fewer statements: those of clusters differ in names and regions alone."""
    resources: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for one in found:
        rest = json.dumps([one["Effect"], one.get("Condition") or {}], sort_keys=True)
        for action in one["Action"]:
            resources[action, rest] |= {json.dumps(arn): None for arn in one["Resource"]}
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (action, rest), arns in resources.items():
        grouped[rest, tuple(_widest(arns))].append(action)
    made = []
    for (rest, patterns), actions in grouped.items():
        effect, condition = json.loads(rest)
        for start in range(0, len(actions), _AT_ONCE):
            part = allow(actions[start : start + _AT_ONCE], [json.loads(arn) for arn in patterns])
            made.append({**part, "Effect": effect} | ({"Condition": condition} if condition else {}))
    return made


def _widest(arns: Iterable[str]) -> Iterator[str]:
    """ARNs, as JSON, without those that the pattern of another one contains."""
    found = [*arns]
    starts = [arn.removesuffix('*"') for arn in found if arn.endswith('*"')]
    for arn in found:
        if not any(arn.startswith(one) and arn != f'{one}*"' for one in starts):
            yield arn


def patterns_of(arn: str) -> tuple[str, ...]:
    """Patterns of a stack's resources from an ARN of the catalog: all after the stack's name, or any id."""
    if ":log-group:" in arn:
        start = arn.partition(":log-group:")[0]
        return tuple(f"{start}:log-group:{name}" for name in _LOG_GROUPS)
    head, named, tail = arn.partition("{stack}")
    if named:
        return (f"{head}{named}{tail[:1]}*" if tail else arn,)
    return (re.sub(r"0{7,}.*$", "*", arn),)


def allow(actions: Iterable[str], resources: Iterable[Any]) -> Statement:
    """A statement; `resources`: ARNs, and references of a template."""
    return {"Effect": "Allow", "Action": [*actions], "Resource": [*resources]}


def _statement(actions: Sequence[str], resources: Sequence[str], equal: Mapping[str, Any]) -> Statement:
    found = allow(actions, resources)
    return {**found, "Condition": {"StringEquals": equal}} if equal else found


def policies(found: Sequence[Statement]) -> list[dict[str, Any]]:
    """Statements as policy documents, each of a size that IAM takes."""
    return [{"Version": "2012-10-17", "Statement": [*part]} for part in _packed(found)]


def _packed(found: Sequence[Statement]) -> Iterator[list[Statement]]:
    part: list[Statement] = []
    for statement in found:
        if part and size([*part, statement]) > MOST_CHARACTERS - _REFERENCES:
            yield part
            part = []
        part.append(statement)
    if part:
        yield part


def size(part: Sequence[Statement]) -> int:
    """Characters of a policy document, as IAM counts them."""
    return len(json.dumps({"Version": "2012-10-17", "Statement": part}, separators=(",", ":")))
