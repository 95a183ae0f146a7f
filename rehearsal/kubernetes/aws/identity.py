"""AWS identity of pods: their own credentials, never those of this machine."""

from collections.abc import Mapping
from pathlib import Path

from rehearsal.dataplane.aws.server import CREDENTIALS_PATH, Dataplane
from rehearsal.kubernetes.clusters import KubeCluster
from rehearsal.workloads.translate import Pod

_TOKEN_VARIABLE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - a variable's name


def environment(dataplane: Dataplane, cluster: KubeCluster, pod: Pod, folder: Path) -> Mapping[str, str]:
    """Variables of a pod; `folder` holds its token."""
    arn = str(cluster.record.outputs.get("arn") or "")
    region = arn.split(":")[3] if arn.startswith("arn:") else ""
    env = {"AWS_ENDPOINT_URL": dataplane.url, "AWS_EC2_METADATA_DISABLED": "true"}
    scope = cluster.record.scope if region else None
    association = dataplane.identities.association(
        cluster.name, pod.namespace, pod.service_account, scope=scope
    )
    if association is not None:
        token = dataplane.identities.token(association, pod.name[:64], folder)
        env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = dataplane.url + CREDENTIALS_PATH
        env[_TOKEN_VARIABLE] = str(token)
        env["AWS_REGION"] = env["AWS_DEFAULT_REGION"] = region
        env["AWS_STS_REGIONAL_ENDPOINTS"] = "regional"
    return env
