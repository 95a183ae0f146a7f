"""Metadata, defaults and status that the API server and its controllers add to objects."""

import copy
import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.kubernetes.diffs import normalized
from rehearsal.kubernetes.kinds import ObjectKind
from rehearsal.workloads.controllers import timestamp

_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation")
# Kinds whose status a controller writes at once; awaited kinds get theirs from `awaits`.
_FIRST_STATUS: Mapping[str, Properties] = {
    "Namespace": {"phase": "Active"},
    "PersistentVolume": {"phase": "Available"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "CustomResourceDefinition": {"conditions": [{"type": "Established", "status": "True"}]},
}


def born(kind: ObjectKind, inputs: Properties, namespace: str, *, on_aws: bool = True) -> Properties:
    """A new object as the API server returns it; `namespace` is empty for cluster-scoped kinds."""
    live = _merged(kind, inputs, namespace)
    live["metadata"].update(
        uid=str(uuid.uuid4()), resourceVersion="1", creationTimestamp=timestamp(), generation=1
    )
    status = _first_status(kind, live, on_aws=on_aws)
    if status is not None:
        live["status"] = status
    return live


def changed(kind: ObjectKind, before: Properties, inputs: Properties) -> Properties:
    """An object after an update; `generation` counts changes of the spec, not of labels."""
    live = _merged(kind, inputs, str(before["metadata"].get("namespace") or ""))
    live["metadata"].update({name: before["metadata"][name] for name in _SERVER_SET})
    same = before.get("spec") == live.get("spec") and before.get("data") == live.get("data")
    if not same:
        live["metadata"]["generation"] += 1
    live["metadata"]["resourceVersion"] = str(int(before["metadata"]["resourceVersion"]) + 1)
    for name in ("clusterIP", "clusterIPs"):
        if kind.kind == "Service" and before["spec"].get(name):
            live["spec"][name] = before["spec"][name]
    if "status" in before:
        live["status"] = before["status"]
    return live


def previewed(kind: ObjectKind, inputs: Properties, namespace: str, before: Properties | None) -> Properties:
    """The object in a preview; values that only the cluster knows are unknown."""
    if before is not None:
        return {**_merged(kind, inputs, namespace), "status": before.get("status", UNKNOWN)} | {
            "metadata": {**before["metadata"], **(inputs.get("metadata") or {}), "resourceVersion": UNKNOWN}
        }
    metadata = inputs.get("metadata")
    if metadata is UNKNOWN or inputs.get("spec") is UNKNOWN:
        return dict(inputs)
    live = _merged(kind, inputs, namespace, defaults=False)
    live["metadata"].update(dict.fromkeys(_SERVER_SET, UNKNOWN))
    live["status"] = UNKNOWN
    return live


def _merged(kind: ObjectKind, inputs: Properties, namespace: str, *, defaults: bool = True) -> Properties:
    live = copy.deepcopy(normalized(kind, inputs)) if defaults else dict(normalized(kind, inputs))
    live["apiVersion"], live["kind"] = kind.api_version, kind.kind
    live["metadata"] = dict(live.get("metadata") or {})
    if namespace:
        live["metadata"]["namespace"] = namespace
    if defaults:
        _default(kind, live)
    return live


def _default(kind: ObjectKind, live: Properties) -> None:
    """Defaults that programs read from outputs."""
    metadata, spec = live["metadata"], live.get("spec")
    if kind == ObjectKind("", "v1", "Namespace"):
        labels = metadata.get("labels") or {}
        metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata["name"]}
        live["spec"] = {"finalizers": ["kubernetes"]}
    elif kind == ObjectKind("", "v1", "Service") and isinstance(spec, dict):
        _default_service(metadata, spec)
    elif kind == ObjectKind("apps", "v1", "Deployment") and isinstance(spec, dict):
        spec.setdefault("replicas", 1)
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {**annotations, "deployment.kubernetes.io/revision": "1"}
    elif kind == ObjectKind("batch", "v1", "Job") and isinstance(spec, dict):
        spec.setdefault("backoffLimit", 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("parallelism", 1)
        spec.setdefault("suspend", False)
    elif kind == ObjectKind("", "v1", "Secret"):
        live.setdefault("type", "Opaque")


def _default_service(metadata: Properties, spec: Properties) -> None:
    spec.setdefault("type", "ClusterIP")
    if spec["type"] != "ExternalName":
        seed = f"{metadata.get('namespace')}/{metadata.get('name')}"
        digest = hashlib.sha256(seed.encode()).digest()
        spec.setdefault("clusterIP", f"10.100.{digest[0]}.{1 + digest[1] % 254}")
        spec["clusterIPs"] = [spec["clusterIP"]]
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])


def _first_status(kind: ObjectKind, live: Properties, *, on_aws: bool) -> Any:
    if kind in (ObjectKind("", "v1", "Service"), ObjectKind("networking.k8s.io", "v1", "Ingress")):
        if kind.kind == "Service" and (live.get("spec") or {}).get("type") != "LoadBalancer":
            return {"loadBalancer": {}}
        digest = hashlib.sha256(live["metadata"]["uid"].encode()).hexdigest()
        # kubernetes.io docs, LoadBalancerIngress: `hostname` is for AWS, `ip` for GCE and others.
        if not on_aws:
            # Documentation addresses (RFC 5737), not reachable.
            return {"loadBalancer": {"ingress": [{"ip": f"203.0.113.{1 + int(digest[:4], 16) % 254}"}]}}
        return {"loadBalancer": {"ingress": [{"hostname": f"a{digest[:31]}.elb.amazonaws.com"}]}}
    if kind == ObjectKind("", "v1", "ResourceQuota"):
        return {"hard": (live.get("spec") or {}).get("hard"), "used": {}}
    return copy.deepcopy(_FIRST_STATUS.get(kind.kind))
