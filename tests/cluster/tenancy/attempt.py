"""Attempts of a team's member: requests as data, and the part of the API server that refuses them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests

from rehearsal.controlplane.api import ApiError, Object
from tests.cluster.tenancy.scene import Scene

Send = Callable[[Scene], Any]
RBAC = ("RBAC",)
KUEUE = "kueue.x-k8s.io/"
PORTS = [{"port": 80}]
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
KINDS = {
    "Pod": "v1", "Service": "v1", "ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1", "Event": "v1",
    "Endpoints": "v1", "PersistentVolumeClaim": "v1", "ReplicationController": "v1", "Namespace": "v1",
    "LimitRange": "v1", "ResourceQuota": "v1", "PersistentVolume": "v1", "Node": "v1",
    "Job": "batch/v1", "CronJob": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2",
    "TrainJob": "trainer.kubeflow.org/v1alpha1", "TrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "Deployment": "apps/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1", "DaemonSet": "apps/v1",
    "Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
    "IngressClass": "networking.k8s.io/v1", "EndpointSlice": "discovery.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
    "Lease": "coordination.k8s.io/v1", "PriorityClass": "scheduling.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1", "CertificateSigningRequest": "certificates.k8s.io/v1",
    "Role": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1", "TokenReview": "authentication.k8s.io/v1",
    "SubjectAccessReview": "authorization.k8s.io/v1", "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "Workload": "kueue.x-k8s.io/v1beta2", "LocalQueue": "kueue.x-k8s.io/v1beta2",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass": "kueue.x-k8s.io/v1beta2",
    "AdmissionCheck": "kueue.x-k8s.io/v1beta2", "ResourceFlavor": "kueue.x-k8s.io/v1beta2",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "APIService": "apiregistration.k8s.io/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1",
}  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    """A request that is refused by one of the parts that `by` names (see `refuser`)."""

    name: str
    send: Send
    by: tuple[str, ...]


@dataclass(frozen=True)
class Accepted:
    """A request that is accepted; its documentation has the reason."""

    name: str
    send: Send
    risk: str
    """The risk of which it is an example: the first cell of a row in docs/reference/tenancy.md."""


def body(
    kind: str, name: str = "attempt", *, labels: Any = None, annotations: Any = None, **more: Any
) -> Object:
    """An object of a kind; `more` are its other parts (spec, data, ...)."""
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {
        "apiVersion": KINDS[kind], "kind": kind,
        "metadata": {key: value for key, value in metadata.items() if value}, **more,
    }  # fmt: skip


def create(made: Object, where: str = "{own}") -> Send:
    """POST an object to a namespace, which is a name or a format of the scene; "" for cluster-wide kinds."""

    def send(scene: Scene) -> Object:
        filled = scene.filled(made)
        namespace = scene.filled(where)
        if namespace:
            filled["metadata"]["namespace"] = namespace
        return scene.member.create(filled, dry_run=True)

    return send


def patch(kind: str, name: str, change: Any, where: str = "{own}", sub: str = "") -> Send:
    """PATCH an object: a list is a JSON patch, a mapping a merge patch."""
    content = JSON_PATCH if isinstance(change, list) else MERGE

    def send(scene: Scene) -> Object:
        url = scene.api.resource(KINDS[kind], kind).url(scene.filled(where), scene.filled(name), sub)
        query = {"dryRun": "All"}
        return scene.member.request("PATCH", url, scene.filled(change), content=content, query=query)

    return send


def delete(kind: str, name: str, where: str = "{own}", **options: Any) -> Send:
    """DELETE an object, or with an empty name all of a kind."""

    def send(scene: Scene) -> Object:
        url = scene.api.resource(KINDS[kind], kind).url(scene.filled(where), scene.filled(name))
        return scene.member.request("DELETE", url, {**options, "dryRun": ["All"]})

    return send


def call(method: str, path: str, content: Any = None, **query: Any) -> Send:
    """Another request of the API."""
    return lambda scene: scene.member.request(
        method, scene.filled(path), scene.filled(content), query={**query, "dryRun": "All"}
    )


def acting_as(user: str, send: Callable[[Scene, Mapping[str, str]], Any], *groups: str) -> Send:
    """A request in another one's name."""
    return lambda scene: send(
        scene,
        {"Impersonate-User": scene.filled(user), **({"Impersonate-Group": groups[0]} if groups else {})},
    )


def raw(method: str, path: str, content: Any = None, kind: str = "application/json") -> Any:
    """A request with headers, for `acting_as`."""

    def send(scene: Scene, headers: Mapping[str, str]) -> Any:
        access = scene.member.access
        answer = requests.request(
            method,
            access.server + scene.filled(path) + "?dryRun=All",
            json=scene.filled(content),
            headers={**headers, "Content-Type": kind},
            cert=(str(access.certificate), str(access.key)),
            verify=str(access.authority),
            timeout=30,
        )
        if answer.status_code >= 400:
            raise ApiError({"code": answer.status_code, **answer.json()})
        return answer.json()

    return send


def refuser(error: ApiError) -> str:
    """The part of the API server that refused: RBAC, a policy, a quota, a webhook, or validation."""
    text = str(error)
    for pattern, name in (
        (r"ValidatingAdmissionPolicy '([^']+)'", ""),
        (r"exceeded quota: ([^,]+),", ""),
        (r'admission webhook "[^"]+\.kb\.io" denied', "Kueue"),
        (r"(?:minimum|maximum) \S+ usage per", "LimitRange"),
        (r"violates PodSecurity", "Pod Security"),
        (r'User "[^"]+" cannot ', "RBAC"),
    ):
        if found := re.search(pattern, text):
            return name or found.group(1)
    return "validation" if error.code in (400, 413, 422) else f"{error.code} {text}"
