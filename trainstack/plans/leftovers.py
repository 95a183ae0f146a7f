"""Objects of a removed namespace that a finalizer of no controller of the stack would hold for ever."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from infra.clouds.kubectl import ClusterApi
from trainstack.collect.object_lists import ListRefusedError, listed

_META = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
# Time for a controller that the stack does not know.
_CONTROLLER_S, _POLL_S = 20.0, 0.5
# Finalizers whose controllers run until the namespaces are gone: of Kubernetes itself (without a domain, or
# of kubernetes.io and k8s.io), of the charts of a stack, and of load balancers of the clouds.
_OWN_NAMES = ("orphan", "foregroundDeletion", "kubernetes")
_OWN_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "x-k8s.io",
    "k8s.aws",
    "gke.io",
    "gke.goog",
    "kubeflow.org",
    "amazonaws.com",
)


def foreign(finalizer: str) -> bool:
    """Return whether no controller of Kubernetes, its cloud or the stack handles a finalizer."""
    domain = finalizer.partition("/")[0]
    return finalizer not in _OWN_NAMES and not any(
        domain == one or domain.endswith(f".{one}") for one in _OWN_DOMAINS
    )


def release_foreign(cluster: ClusterApi, namespace: str, report: Callable[[str], None], *, now: bool) -> None:
    """Delete objects with a foreign finalizer, and remove the finalizer where no controller does so in time.

    With `now`, controllers get no time.
    """
    held = dict(_held(cluster, namespace))
    for path in held:
        cluster.send("DELETE", path, {})
    ends = time.monotonic() + (0 if now else _CONTROLLER_S)
    while held and time.monotonic() < ends:
        time.sleep(_POLL_S)
        held = {path: names for path in held if (names := _foreign(cluster.get(path).body))}
    for path, names in held.items():
        report(f"no controller handles {', '.join(names)} of {path.partition('/namespaces/')[2]}: removed")
        about = cluster.get(path).body.get("metadata") or {}
        kept = [one for one in about.get("finalizers") or () if not foreign(one)]
        cluster.send("PATCH", path, {"metadata": {"finalizers": kept or None}})


def _foreign(body: Mapping[str, Any]) -> list[str]:
    return [one for one in (body.get("metadata") or {}).get("finalizers") or () if foreign(one)]


def _held(cluster: ClusterApi, namespace: str) -> Iterator[tuple[str, list[str]]]:
    """Paths of objects with foreign finalizers, and these."""
    for base, plural in _kinds(cluster):
        path = f"{base}/namespaces/{namespace}/{plural}"
        try:
            found = listed(cluster, path, _META)
        except ListRefusedError:
            continue
        for body in found:
            if names := _foreign(body):
                yield f"{path}/{body['metadata']['name']}", names


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
