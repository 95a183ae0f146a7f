"""The kubeconfig of an EKS cluster."""

import json


def kubeconfig(cluster: str, endpoint: str, certificate_authority: str, region: str) -> str:
    """A kubeconfig for an EKS cluster without a secret: tokens come from `aws eks get-token`."""
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
