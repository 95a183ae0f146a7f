"""The one door to cloud providers: every resource of a stack goes through a provider that is made here."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes


def aws_provider(name: str, *, account_id: str, region: str, tags: Mapping[str, str]) -> aws.Provider:
    """AWS in one region of one account; every taggable resource gets `tags`.

    Credentials come from the environment; those of another account are refused before anything is made.
    """
    tagged: aws.ProviderDefaultTagsArgsDict = {"tags": dict(tags)}
    return aws.Provider(name, region=region, allowed_account_ids=[account_id], default_tags=tagged)


def kubernetes_provider(name: str, *, kubeconfig: pulumi.Input[str]) -> kubernetes.Provider:
    """Kubernetes with server-side apply."""
    return kubernetes.Provider(name, kubeconfig=kubeconfig, enable_server_side_apply=True)
