"""Google Cloud identity of pods of GKE: their own, never that of this machine."""

from collections.abc import Collection, Mapping

from rehearsal.core.model import Call, Properties, Record
from rehearsal.dataplane.gcp.iam_bindings import allowed, allowed_object, may_somewhere
from rehearsal.dataplane.gcp.identity import ANNOTATION, PodIdentity, account_record, identity_of
from rehearsal.dataplane.gcp.server import GooglePlane
from rehearsal.kubernetes.clusters import GKE_CLUSTER, KubeCluster
from rehearsal.kubernetes.diffs import annotations
from rehearsal.workloads.translate import Pod

_KIND, _BUCKET = "kubernetes:core/v1:ServiceAccount", "gcp:storage/bucket:Bucket"
_USE = "iam.serviceAccounts.getAccessToken"
# Emulated APIs, by their names in gcloud's variables for endpoints.
_APIS = ("SECRETMANAGER", "IAMCREDENTIALS", "PUBSUB", "STS")
_OBJECT_RIGHTS = tuple(f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete"))


def environment(plane: GooglePlane, cluster: KubeCluster, pod: Pod) -> Mapping[str, str]:
    """Variables of a pod."""
    host = plane.metadata_host(of_account(cluster, pod.namespace, pod.service_account))
    return {
        "GCE_METADATA_HOST": host,
        "GCE_METADATA_IP": host,
        "AWS_EC2_METADATA_DISABLED": "true",
        **endpoints(plane),
    }


def endpoints(plane: GooglePlane) -> Mapping[str, str]:
    """Variables for the emulated APIs, which have no identity in them."""
    return {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": plane.url for api in _APIS}


def of_account(cluster: KubeCluster, namespace: str, account: str) -> PodIdentity:
    """Identity of the pods of a service account."""
    record = cluster.get("ServiceAccount", namespace, account)
    asked = annotations(record.inputs) if record else {}
    return identity_of(cluster.state, cluster.record, namespace, account, asked)


def may_use(cluster: KubeCluster, pod: Pod, bucket: Record) -> bool:
    """Return whether a pod has a right to objects of a bucket; true outside GKE (unknown identity)."""
    if cluster.record.type != GKE_CLUSTER:
        return True
    members = _members(cluster, pod)
    return any(may_somewhere(cluster.state, members, right, bucket) for right in _OBJECT_RIGHTS)


def may_list(cluster: KubeCluster, pod: Pod, bucket: str) -> bool:
    """Return whether a pod may list the whole of a bucket; true outside GKE (unknown identity)."""
    found = next((one for one in cluster.state.find(type=_BUCKET) if one.id == bucket), None)
    if cluster.record.type != GKE_CLUSTER or found is None:
        return True
    return allowed_object(cluster.state, _members(cluster, pod), "storage.objects.list", found, "")


def _members(cluster: KubeCluster, pod: Pod) -> Collection[str]:
    one = of_account(cluster, pod.namespace, pod.service_account)
    return (f"serviceAccount:{one.annotated}",) if one.annotated else one.members


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
