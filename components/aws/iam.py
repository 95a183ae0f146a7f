"""IAM policy documents as JSON: trust of roles, permissions of roles and keys."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pulumi
import pulumi_aws as aws

from components.aws.account import AwsAccount
from components.base import Component
from infra.naming import sanitize

Conditions: TypeAlias = Mapping[str, Mapping[str, str]]
# The provider adds a dash and seven characters to the name of a role, and rejects results of more than 64
# (pulumi-aws provider/resource_overrides.go, "aws_iam_role"; pulumi-terraform-bridge pkg/tfbridge/names.go).
_ROLE_NAME = 56


def role(
    component: Component, name: str, trusted: pulumi.Input[str], *, description: str | None = None
) -> aws.iam.Role:
    """A role whose name ends in a digest when names of stack, team and part are too long together."""
    return aws.iam.Role(
        sanitize(name, max_length=_ROLE_NAME),
        description=description,
        assume_role_policy=trusted,
        opts=component.child(),
    )


def roles_named(account: AwsAccount, start: str) -> str:
    """A pattern of the ARNs of roles that `role` creates with names that begin with `start`."""
    return f"arn:{account.partition}:iam::{account.id}:role/{start[: _ROLE_NAME - 8].rstrip('-')}-*"


def document(*statements: Mapping[str, object]) -> str:
    """An IAM policy document of these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, object]:
    """A statement that allows `actions` on `resources`."""
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


def trust(
    service: str, *, actions: Sequence[str] = ("sts:AssumeRole",), conditions: Conditions | None = None
) -> str:
    """A trust policy for one AWS service.

    A service principal is shared by all of AWS's customers: unless the service can only act for the account
    that assumes the role (EC2, pods), pass `from_account` as conditions, or it is a confused deputy.
    """
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": list(actions),
    }
    if conditions:
        statement["Condition"] = conditions
    return document(statement)


def from_account(account_id: str, source_arn: str) -> Conditions:
    """Conditions that hold only when the service acts for `source_arn` (may hold `*`) of this account."""
    return {"StringEquals": {"aws:SourceAccount": account_id}, "ArnLike": {"aws:SourceArn": source_arn}}


def pod_identity_trust(cluster_arn: str, namespace: str, service_account: str) -> str:
    """Trust for the pods of exactly one service account of one cluster (EKS Pod Identity).

    EKS sends the pod's cluster, namespace and account as session tags, so `sts:TagSession` is needed beside
    `sts:AssumeRole`; without the conditions any association in the account, on any cluster, could use this
    role. Source: EKS user guide, "EKS Pod Identity" (pod-id-abac, session tags added by EKS).
    """
    return trust(
        "pods.eks.amazonaws.com",
        actions=("sts:AssumeRole", "sts:TagSession"),
        conditions={
            "StringEquals": {
                "aws:RequestTag/eks-cluster-arn": cluster_arn,
                "aws:RequestTag/kubernetes-namespace": namespace,
                "aws:RequestTag/kubernetes-service-account": service_account,
            }
        },
    )


def managed_policy_arn(partition: pulumi.Output[str], policy: str) -> pulumi.Output[str]:
    """The ARN of a policy that AWS maintains, such as `AmazonEKS_CNI_Policy`."""
    return partition.apply(lambda known: f"arn:{known}:iam::aws:policy/{policy}")


def owned_by(root_arn: str) -> dict[str, object]:
    """The key-policy statement that delegates access to IAM policies of the account of `root_arn`.

    Without it a key can become unmanageable; by itself it grants nothing.
    """
    return {
        "Sid": "AccountDecidesByIam",
        "Effect": "Allow",
        "Principal": {"AWS": root_arn},
        "Action": "kms:*",
        "Resource": "*",
    }


def usable_by_logs(region: str, log_group_arn: str) -> dict[str, object]:
    """The key-policy statement with which CloudWatch Logs encrypts `log_group_arn`, and only that group.

    Source: CloudWatch Logs user guide, "Encrypt log data using KMS".
    """
    return {
        "Sid": "CloudWatchLogsEncryptsThisGroup",
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{region}.amazonaws.com"},
        "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
        "Resource": "*",
        "Condition": {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": log_group_arn}},
    }
