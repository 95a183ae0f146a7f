"""Kinds of objects that rules read; each is listed in one version."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ListedKind:
    """A kind of objects, as an API server lists it."""

    group: str
    """Empty for the core group."""
    kind: str
    versions: tuple[str, ...]
    """Versions that rules read; the server prefers one."""
    namespaced: bool
    whole: bool = True
    """False if only metadata is read."""

    @property
    def plural(self) -> str:
        """Plural in paths and permissions (apimachinery pkg/api/meta/restmapper.go)."""
        name = self.kind.lower()
        if name.endswith("params"):  # as the CRDs of elbv2.k8s.aws and eks.amazonaws.com say
            return name
        if name.endswith("s"):
            return f"{name}es"
        return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"

    @property
    def query(self) -> str:
        """Key of its answers."""
        return f"{self.group or 'core'}.{self.plural}"

    @property
    def right(self) -> str:
        """Required permission, in the format of `kubectl auth can-i`."""
        return f"list {self.plural}{'.' if self.group else ''}{self.group}"

    def type(self, version: str) -> str:
        """The Pulumi type."""
        return f"kubernetes:{self.group or 'core'}/{version}:{self.kind}"


# By group: versions, kinds that live in a namespace, and kinds of the whole cluster.
_READ: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("", ("v1",), "ConfigMap LimitRange Pod PodTemplate ReplicationController ResourceQuota", "Namespace"),
    ("", ("v1",), "Service", ""),
    ("apps", ("v1",), "DaemonSet Deployment ReplicaSet StatefulSet", ""),
    ("batch", ("v1",), "CronJob Job", ""),
    ("admissionregistration.k8s.io", ("v1",), "", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", ("v1",), "", "ValidatingAdmissionPolicyBinding"),
    ("networking.k8s.io", ("v1",), "Ingress NetworkPolicy", "IngressClass"),
    ("rbac.authorization.k8s.io", ("v1",), "RoleBinding", "ClusterRoleBinding"),
    ("storage.k8s.io", ("v1",), "", "StorageClass"),
    ("eks.amazonaws.com", ("v1",), "", "IngressClassParams NodeClass"),
    ("elbv2.k8s.aws", ("v1beta1",), "", "IngressClassParams"),
    ("karpenter.sh", ("v1",), "", "NodePool"),
    ("jobset.x-k8s.io", ("v1alpha2",), "JobSet", ""),
    ("kubeflow.org", ("v1",), "JAXJob PaddleJob PyTorchJob TFJob XGBoostJob", ""),
    # Of mpi-operator or of training-operator: a cluster has one of them.
    ("kubeflow.org", ("v2beta1", "v1"), "MPIJob", ""),
    ("kueue.x-k8s.io", ("v1beta2", "v1beta1"), "LocalQueue", "ClusterQueue ResourceFlavor"),
    ("leaderworkerset.x-k8s.io", ("v1",), "LeaderWorkerSet", ""),
    ("monitoring.coreos.com", ("v1",), "PrometheusRule", ""),
    ("ray.io", ("v1",), "RayCluster RayJob RayService", ""),
    ("trainer.kubeflow.org", ("v1alpha1",), "TrainJob TrainingRuntime", "ClusterTrainingRuntime"),
)  # fmt: skip
# Rules only check that they exist.
_COUNTED = (
    ("cilium.io", ("v2",), "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"),
    ("crd.projectcalico.org", ("v1",), "", "GlobalNetworkPolicy"),
    ("projectcalico.org", ("v3",), "NetworkPolicy", "GlobalNetworkPolicy"),
    ("policy.networking.k8s.io", ("v1alpha1",), "", "AdminNetworkPolicy BaselineAdminNetworkPolicy"),
    ("policy.networking.k8s.io", ("v1alpha2",), "", "ClusterNetworkPolicy"),
    ("networking.k8s.aws", ("v1alpha1",), "ApplicationNetworkPolicy", "ClusterNetworkPolicy"),
)


def _object_kinds() -> Iterator[ListedKind]:
    for rows, whole in ((_READ, True), (_COUNTED, False)):
        for group, versions, inside, outside in rows:
            yield from (ListedKind(group, kind, versions, True, whole) for kind in inside.split())
            yield from (ListedKind(group, kind, versions, False, whole) for kind in outside.split())


OBJECT_KINDS = tuple(_object_kinds())
