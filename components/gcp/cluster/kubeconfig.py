"""The kubeconfig of a GKE cluster."""

import json


def kubeconfig(cluster: str, endpoint: str, certificate_authority: str = "") -> str:
    """A kubeconfig for a GKE cluster without a secret: tokens come from `gke-gcloud-auth-plugin`.

    They are of the application default credentials, those of the stack's provider, of the preflight and of
    Google's libraries: a pipeline with a service account's file, or with workload identity, has no login of
    gcloud, and where both exist, gcloud's may be another user, which no check covers. Members have
    one login, too: `gcloud auth application-default login` (kubernetes/cloud-provider-gcp@ecf3eea
    cmd/gke-gcloud-auth-plugin).

    `endpoint` is a URL. At the DNS endpoint Google's public authorities sign the server's certificate, so
    there is no `certificate_authority`, and clients verify it as that of any web site; at an address it is
    the cluster's own, in base64. As written by `gcloud container clusters get-credentials`, with and without
    `--dns-endpoint` (google-cloud-sdk, api_lib/container/kubeconfig.py, read 2026-11-25), but for the login.
    """
    server = {"server": endpoint}
    if certificate_authority:
        server["certificate-authority-data"] = certificate_authority
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "args": ["--use_application_default_credentials"],
        "installHint": "Install it with: gcloud components install gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": server}],
            "users": [{"name": cluster, "user": {"exec": login}}],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
            "current-context": cluster,
        },
        indent=2,
    )
