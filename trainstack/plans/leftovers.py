"""Objects of a removed namespace that a finalizer of no controller of the stack would hold for ever."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from infra.clouds.kubectl import ClusterApi
from infra.errors import Problem, UserError
from trainstack.collect.object_lists import ListRefusedError, listed

_META = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Time for a controller that the stack does not know, and without grace period; some delete things in a cloud.
_CONTROLLER_S, _NOW_S, _POLL_S = 180.0, 20.0, 0.5
# Of the garbage collector, on every kind.
_EVERYWHERE = ("foregroundDeletion", "orphan")
# Finalizers whose controllers run until the namespaces are gone, by the kind that these handle: of Kubernetes
# and its CSI sidecars, of the charts of a stack, and of load balancers of the clouds. Exact names, for a
# controller handles no others of its domain, and none on another kind. Sources: kubernetes v1.36.2
# pkg/volume/util/finalizer.go, pkg/apis/batch/types.go, pkg/apis/resource/types.go; kubernetes/cloud-provider
# v0.36.2 service/helpers/helper.go; kueue v0.19.2 apis/kueue/v1beta2/constants.go and
# pkg/controller/jobs/pod/pod_controller.go; trainer v2.3.0 pkg/constants/constants.go; kubernetes/ingress-gce
# pkg/utils/common/finalizer.go; aws-load-balancer-controller docs.
_HANDLED = {
    "pods": ("batch.kubernetes.io/job-tracking", "kueue.x-k8s.io/managed"),
    "persistentvolumeclaims": (
        "kubernetes.io/pvc-protection",
        "provisioner.storage.kubernetes.io/cloning-protection",
        "snapshot.storage.kubernetes.io/pvc-as-source-protection",
    ),
    "volumesnapshots": (
        "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection",
        "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection",
    ),
    "resourceclaims": ("resource.kubernetes.io/delete-protection",),
    "workloads": ("kueue.x-k8s.io/resource-in-use",),
    "trainingruntimes": ("trainer.kubeflow.org/resource-in-use",),
    "services": (
        "service.kubernetes.io/load-balancer-cleanup",
        "service.k8s.aws/resources",
        *(f"gke.networking.io/l4-{kind}" for kind in ("ilb-v1", "ilb-v2")),
        *(f"gke.networking.io/l4-netlb-v{version}" for version in (1, 2, 3)),
    ),
    "ingresses": (
        "ingress.k8s.aws/resources",
        "networking.gke.io/ingress-finalizer",
        "networking.gke.io/ingress-finalizer-V2",
    ),
    "targetgroupbindings": ("elbv2.k8s.aws/resources",),
    "servicenetworkendpointgroups": ("networking.gke.io/neg-finalizer",),
}
# Domains of operators that delete resources of a cloud (Config Connector, Crossplane, AWS Controllers for
# Kubernetes): without the object nothing names what is left, and paid for.
_OF_CLOUDS = ("cnrm.cloud.google.com", "crossplane.io", "services.k8s.aws")


def foreign(finalizer: str, plural: str) -> bool:
    """Return whether no controller of Kubernetes, its cloud or the stack handles a finalizer on a kind."""
    return finalizer not in _EVERYWHERE and finalizer not in _HANDLED.get(plural, ())


def keeps(finalizer: str) -> bool:
    """Return whether a finalizer's removal would leave resources of a cloud behind."""
    domain = finalizer.partition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _OF_CLOUDS)


def release_foreign(
    cluster: ClusterApi, namespaces: Iterable[str], report: Callable[[str], None], *, now: bool
) -> None:
    """Delete objects with a foreign finalizer, and remove the finalizer where no controller does so in time.

    All namespaces have one time together; with `now` it is shorter. Raises UserError for objects whose
    resources in a cloud are left.
    """
    held = {path: names for namespace in namespaces for path, names in _held(cluster, namespace)}
    for path in held:
        cluster.send("DELETE", path, {})
    limit = _NOW_S if now else _CONTROLLER_S
    if held:
        shown = ", ".join(sorted({name for names in held.values() for name in names}))
        where = ", ".join(sorted({_shown(path).partition("/")[0] for path in held}))
        report(f"waiting for controllers of {len(held)} objects of {where} ({shown}), {limit:.0f} s at most")
    ends = time.monotonic() + limit
    while held and time.monotonic() < ends:
        time.sleep(_POLL_S)
        held = {path: names for path in held if (names := _foreign(cluster.get(path).body, path))}
    if problems := [_left(path, names) for path, names in held.items() if any(map(keeps, names))]:
        raise UserError(problems)
    for path, names in held.items():
        report(f"no controller handles {', '.join(names)} of {_shown(path)}: removed")
        about = cluster.get(path).body.get("metadata") or {}
        kept = [one for one in about.get("finalizers") or () if not foreign(one, _plural(path))]
        cluster.send("PATCH", path, {"metadata": {"finalizers": kept or None}})


def _left(path: str, names: Sequence[str]) -> Problem:
    rule = f"{', '.join(names)}: its controller has not deleted what the object stands for in a cloud"
    fix = "Wait, or repair that controller; else delete the resource in the cloud, then remove the finalizer."
    return Problem(_shown(path), None, rule, fix, code="finalizer-of-a-cloud")


def _shown(path: str) -> str:
    return path.partition("/namespaces/")[2]


def _plural(path: str) -> str:
    return path.rsplit("/", 2)[-2]


def _foreign(body: Mapping[str, Any], path: str) -> list[str]:
    finalizers = (body.get("metadata") or {}).get("finalizers") or ()
    return [one for one in finalizers if foreign(one, _plural(path))]


def _held(cluster: ClusterApi, namespace: str) -> Iterator[tuple[str, list[str]]]:
    """Paths of objects with foreign finalizers, and these."""
    for base, plural in _kinds(cluster):
        path = f"{base}/namespaces/{namespace}/{plural}"
        try:
            found = listed(cluster, path, _META)
        except ListRefusedError:
            continue
        for body in found:
            one = f"{path}/{body['metadata']['name']}"
            if names := _foreign(body, one):
                yield one, names


def _kinds(cluster: ClusterApi) -> Iterator[tuple[str, str]]:
    """Path and plural of every kind in namespaces that can be listed and deleted: its preferred version."""
    for root in ("/api", "/apis"):
        for group in cluster.get(root, _DISCOVERY).body.get("items") or ():
            name = group["metadata"].get("name") or ""
            version: Mapping[str, Any] = next(iter(group.get("versions") or ()), {})
            for row in version.get("resources") or ():
                if row["scope"] == "Namespaced" and {"list", "delete"} <= {*row.get("verbs", ())}:
                    middle = f"/{name}" if name else ""
                    yield f"{root}{middle}/{version['version']}", row["resource"]
