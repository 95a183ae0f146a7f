"""How a pod of a GKE cluster reaches Google Cloud: by its own identity, and never by this machine's."""

from collections.abc import Mapping

from rehearsal.core.model import Call, Properties, Record
from rehearsal.dataplane.gcp.iam_bindings import allowed, may_somewhere
from rehearsal.dataplane.gcp.identity import ANNOTATION, PodIdentity, account_record, identity_of
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.kubernetes.api.diffs import annotations
from rehearsal.kubernetes.clusters import GKE_CLUSTER, KubeCluster
from rehearsal.workloads.translate import Pod

_KIND = "kubernetes:core/v1:ServiceAccount"
_USE = "iam.serviceAccounts.getAccessToken"
# The APIs that answer here, as gcloud's variables for other endpoints name them.
_APIS = ("SECRETMANAGER", "IAMCREDENTIALS", "PUBSUB")
_OBJECT_RIGHTS = tuple(f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete"))


def environment(plane: GooglePlane, cluster: KubeCluster, pod: Pod) -> Mapping[str, str]:
    """The variables of a pod."""
    host = plane.metadata_host(of_account(cluster, pod.namespace, pod.service_account))
    return {
        "GCE_METADATA_HOST": host,
        "GCE_METADATA_IP": host,
        "AWS_EC2_METADATA_DISABLED": "true",
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": plane.url for api in _APIS},
    }


def of_account(cluster: KubeCluster, namespace: str, account: str) -> PodIdentity:
    """Who the pods of a service account are."""
    record = cluster.get("ServiceAccount", namespace, account)
    asked = annotations(record.inputs) if record else {}
    return identity_of(cluster.state, cluster.record, namespace, account, asked)


def may_use(cluster: KubeCluster, pod: Pod, bucket: Record) -> bool:
    """Whether a pod has a right to objects of a bucket; true outside GKE, where its identity is unknown."""
    if not _is_gke(cluster):
        return True
    one = of_account(cluster, pod.namespace, pod.service_account)
    members = (f"serviceAccount:{one.annotated}",) if one.annotated else one.members
    return any(may_somewhere(cluster.state, members, right, bucket) for right in _OBJECT_RIGHTS)


def warn(call: Call, cluster: KubeCluster, inputs: Properties) -> None:
    """Say that the pods of a new or changed service account will not get the Google account that it names."""
    email = annotations(inputs).get(ANNOTATION)
    if call.type != _KIND or not _is_gke(cluster) or not isinstance(email, str):
        return
    metadata = inputs.get("metadata") or {}
    namespace, name = str(metadata.get("namespace") or "default"), str(metadata.get("name"))
    one = identity_of(cluster.state, cluster.record, namespace, name, {})
    account = account_record(cluster.state, email)
    if not one.pool:
        call.log("warning", f"cluster {cluster.name} has no workload pool: its pods get the node's account")
    elif account is not None and not allowed(cluster.state, one.members, _USE, account, account.id):
        call.log(
            "warning",
            f"pods of the service account {namespace}/{name} will get 403: Permission '{_USE}' denied on "
            f"{email}: grant roles/iam.workloadIdentityUser to serviceAccount:{one.pool}[{namespace}/{name}]",
        )


def _is_gke(cluster: KubeCluster) -> bool:
    return cluster.record.type == GKE_CLUSTER
