"""Google Cloud identity of pods of GKE: their own, never that of this machine."""

from collections.abc import Mapping

from rehearsal.core.model import Call, Properties, Record
from rehearsal.dataplane.gcp.iam_bindings import allowed, may_somewhere
from rehearsal.dataplane.gcp.identity import ANNOTATION, PodIdentity, account_record, identity_of
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.kubernetes.clusters import GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.diffs import annotations
from rehearsal.workloads.translate import Pod

_KIND = "kubernetes:core/v1:ServiceAccount"
_USE = "iam.serviceAccounts.getAccessToken"
# Emulated APIs, by their names in gcloud's variables for endpoints.
_APIS = ("SECRETMANAGER", "IAMCREDENTIALS", "PUBSUB")
_OBJECT_RIGHTS = tuple(f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete"))


def environment(plane: GooglePlane, cluster: KubeCluster, pod: Pod) -> Mapping[str, str]:
    """Variables of a pod."""
    host = plane.metadata_host(of_account(cluster, pod.namespace, pod.service_account))
    return {
        "GCE_METADATA_HOST": host,
        "GCE_METADATA_IP": host,
        "AWS_EC2_METADATA_DISABLED": "true",
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": plane.url for api in _APIS},
    }


def of_account(cluster: KubeCluster, namespace: str, account: str) -> PodIdentity:
    """Identity of the pods of a service account."""
    record = cluster.get("ServiceAccount", namespace, account)
    asked = annotations(record.inputs) if record else {}
    return identity_of(cluster.state, cluster.record, namespace, account, asked)


def may_use(cluster: KubeCluster, pod: Pod, bucket: Record) -> bool:
    """Return whether a pod has a right to objects of a bucket; true outside GKE (unknown identity)."""
    if cluster.record.type != GKE_CLUSTER:
        return True
    one = of_account(cluster, pod.namespace, pod.service_account)
    members = (f"serviceAccount:{one.annotated}",) if one.annotated else one.members
    return any(may_somewhere(cluster.state, members, right, bucket) for right in _OBJECT_RIGHTS)


def warn(call: Call, cluster: KubeCluster, inputs: Properties) -> None:
    """Warn that pods of a service account will not get the Google account that it names."""
    email = annotations(inputs).get(ANNOTATION)
    if call.type != _KIND or cluster.record.type != GKE_CLUSTER or not isinstance(email, str):
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
