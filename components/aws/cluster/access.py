"""Access entries: the IAM principals that the API server of an EKS cluster accepts."""

import hashlib
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.base import Component
from infra import naming


def label(principal: str) -> str:
    """A short name for a principal, independent of its place in a list: reordering must not remove access."""
    digest = hashlib.sha256(principal.encode()).hexdigest()[:6]  # two paths may end alike
    return f"{naming.sanitize(principal.rsplit('/', 1)[1], max_length=40)}-{digest}"


def access_entry(
    component: Component,
    name: str,
    cluster_name: pulumi.Input[str],
    principal: str,
    groups: Sequence[str] | None = None,
) -> aws.eks.AccessEntry:
    """Let a principal log in as a member of Kubernetes groups; by itself it has no permissions."""
    return aws.eks.AccessEntry(
        f"{name}-access-{label(principal)}",
        cluster_name=cluster_name,
        principal_arn=principal,
        kubernetes_groups=list(groups) if groups else None,
        type="STANDARD",
        opts=component.child(),
    )
