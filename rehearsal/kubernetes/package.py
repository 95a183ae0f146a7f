"""The emulated `kubernetes` package: its classes, and how an API server responds to faults."""

from rehearsal.core.model import RAISE_QUOTA, TRY_AGAIN, FaultResponses, Package, RefusalError


def _no_capacity(token: str, name: str) -> RefusalError:
    return RefusalError("Unschedulable", "0/0 nodes are available: insufficient capacity.", TRY_AGAIN)


def _over_quota(token: str, name: str) -> RefusalError:
    text = f'{token.rpartition(":")[2]} "{name}" is forbidden: exceeded quota.'
    return RefusalError("Forbidden", text, RAISE_QUOTA)


PACKAGE = Package(
    "rehearsal.kubernetes.cloud:KubernetesCloud",
    real_cloud="rehearsal.realcluster.cloud:RealKubernetesCloud",
    environment={
        "kubeconfig": ("KUBECONFIG",),
        "upsertExistingObjects": ("PULUMI_K8S_UPSERT_EXISTING_OBJECTS",),
        "enableConfigMapMutable": ("PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",),
        "enableSecretMutable": ("PULUMI_K8S_ENABLE_SECRET_MUTABLE",),
    },
    bridged=False,
    faults=FaultResponses(
        retries=10,  # `maxRetries` of client-go
        throttled=(
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        expired=("Unauthorized", "the server has asked for the client to provide credentials"),
        transient=("InternalError", "Internal error occurred: etcdserver: request timed out"),
        no_capacity=_no_capacity,
        over_quota=_over_quota,
    ),
)
