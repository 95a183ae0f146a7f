"""Pulumi providers: every resource of a stack uses a provider from here."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes

from components.gcp import propagation


def aws_provider(name: str, *, account_id: str, region: str, tags: Mapping[str, str]) -> aws.Provider:
    """AWS in one region of one account; every taggable resource gets `tags`.

    Credentials come from the environment; those of another account are refused before any change.
    """
    tagged: aws.ProviderDefaultTagsArgsDict = {"tags": dict(tags)}
    return aws.Provider(name, region=region, allowed_account_ids=[account_id], default_tags=tagged)


def gcp_provider(name: str, *, project: str, region: str, labels: Mapping[str, str]) -> gcp.Provider:
    """Google Cloud in one region of one project; every resource with labels gets `labels`.

    APIs without a project of their own, such as budgets, count against this project's quota.
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
