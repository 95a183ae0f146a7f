"""Pulumi providers: every resource of a stack uses a provider from here."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes

from components.gcp import propagation
from infra.stackspec.aws.cloud import AssumeRoleSpec, AwsSpec


def aws_provider(name: str, on: AwsSpec, *, region: str, tags: Mapping[str, str]) -> aws.Provider:
    """AWS in one region of the account of `on`; every taggable resource gets `tags`.

    Credentials come from the environment, or are those of a role that it assumes, which the provider renews
    while it runs; those of another account are refused before any change.
    """
    tagged: aws.ProviderDefaultTagsArgsDict = {"tags": dict(tags)}
    roles = [] if on.assume_role is None else [_assumed(name, on.assume_role)]
    return aws.Provider(
        name,
        region=region,
        allowed_account_ids=[on.account_id],
        default_tags=tagged,
        assume_roles=roles or None,
    )


def _assumed(name: str, role: AssumeRoleSpec) -> aws.ProviderAssumeRoleArgs:
    """The role for a provider; its session has the provider's name in the log of the account."""
    return aws.ProviderAssumeRoleArgs(  # the keys of a dictionary would reach the provider as they are
        role_arn=role.role_arn,
        session_name=f"trainstack-{name}",
        # The most for a role that another role assumes (IAM User Guide, "Methods to assume a role").
        duration="1h",
        external_id=role.external_id,
    )


def gcp_provider(
    name: str, *, project: str, region: str, labels: Mapping[str, str], impersonate: str | None = None
) -> gcp.Provider:
    """Google Cloud in one region of one project; every resource with labels gets `labels`.

    Requests are sent as the deployer, or as the service account `impersonate`. APIs without a project of
    their own, such as budgets, count against this project's quota.
    Raises UserError for an invalid pause of IAM: every stack of a project begins here.
    """
    propagation.pause_s()
    return gcp.Provider(
        name,
        project=project,
        region=region,
        default_labels=dict(labels),
        user_project_override=True,
        billing_project=project,
        impersonate_service_account=impersonate,
    )


def kubernetes_provider(
    name: str, *, kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str] | None = None
) -> kubernetes.Provider:
    """Kubernetes with server-side apply.

    `cluster` is a unique id of the cluster. Without it, the provider treats a changed address or authority as
    another cluster, and replaces everything in it.
    """
    return kubernetes.Provider(
        name, kubeconfig=kubeconfig, cluster_identifier=cluster, enable_server_side_apply=True
    )
