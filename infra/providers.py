"""The one door to cloud providers: every resource of a stack goes through a provider that is made here."""

import json
from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes


def aws_provider(name: str, *, region: str, tags: Mapping[str, str]) -> aws.Provider:
    """AWS in one region; every taggable resource gets `tags`. Credentials come from the environment."""
    return aws.Provider(name, region=region, default_tags={"tags": dict(tags)})


def kubeconfig(cluster: str, endpoint: str, certificate_authority: str, region: str) -> str:
    """A kubeconfig for an EKS cluster that holds no secret: tokens come from `aws eks get-token`."""
    command = ["--region", region, "eks", "get-token", "--cluster-name", cluster, "--output", "json"]
    login = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": command}
    server = {"server": endpoint, "certificate-authority-data": certificate_authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": server}],
            "users": [{"name": cluster, "user": {"exec": {**login, "interactiveMode": "Never"}}}],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
            "current-context": cluster,
        },
        indent=2,
    )


def kubernetes_provider(name: str, *, kubeconfig: pulumi.Input[str]) -> kubernetes.Provider:
    """Kubernetes with server-side apply."""
    return kubernetes.Provider(name, kubeconfig=kubeconfig, enable_server_side_apply=True)
