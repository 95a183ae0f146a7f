"""Objects of a cluster in the form of a state: the provider stores them as the API server returns them."""

from collections.abc import Iterator
from typing import Any

from policies.sources.convert import plain
from policies.sources.live.kubernetes.object_kinds import OBJECT_KINDS, ListedKind
from policies.sources.live.mapping import LiveKind, Reader, View
from policies.sources.live.queries import ApiQuery

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces that Kubernetes creates for itself (Kubernetes, Namespaces, "Initial namespaces")."""
# Rules read settings there, by name.
_READ_IN_SYSTEM = ("ConfigMap",)
# Objects that the API server restores at each start (Kubernetes, Using RBAC, "Auto-reconciliation").
_BOOTSTRAPPED = ("kubernetes.io/bootstrapping", "rbac-defaults")
_BINDING = ("roleRef", "subjects")
_CLASS = (
    *("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion"),
    *("allowedTopologies", "mountOptions"),
)
# Fields of kinds besides metadata; `spec` by default (Kubernetes API Reference 1.36).
_FIELDS = {
    "ClusterRoleBinding": _BINDING,
    "ConfigMap": ("data",),
    "PodTemplate": ("template",),
    "RoleBinding": _BINDING,
    "StorageClass": _CLASS,
}
_JUDGED = frozenset((sort.group, sort.kind) for sort in OBJECT_KINDS if sort.whole)


def _field(name: str) -> Reader:
    return lambda view: plain(view.at(name), name)


def _of(version: str) -> Reader:
    """Accept objects in a version, without those that a controller created for a judged object."""

    def read(view: View) -> bool:
        if str(view.at("apiVersion")).rpartition("/")[2] != version:
            return False
        owners = view.at("metadata.ownerReferences") or ()
        made_for = [one for one in owners if one.get("controller") is True]
        return not any(
            (str(one.get("apiVersion")).rpartition("/")[0], one.get("kind")) in _JUDGED for one in made_for
        )

    return read


def _is_of_the_cluster(view: View) -> bool:
    """Return whether it is part of Kubernetes itself."""
    about: Any = view.at("metadata")
    kind, name = view.at("kind"), str(about.get("name"))
    if kind == "Namespace":
        return name in SYSTEM
    if kind in ("ClusterRoleBinding", "RoleBinding"):
        label, value = _BOOTSTRAPPED
        usual = name == "cluster-admin" or name.startswith("system:")
        return usual and (about.get("labels") or {}).get(label) == value
    return kind not in _READ_IN_SYSTEM and about.get("namespace") in SYSTEM


def _kinds(sort: ListedKind) -> Iterator[LiveKind]:
    fields = ("metadata", *_FIELDS.get(sort.kind, ("spec",))) if sort.whole else ("metadata",)
    for version in sort.versions:
        yield LiveKind(
            sort.type(version),
            sort.query,
            "{metadata.namespace}/{metadata.name}" if sort.namespaced else "{metadata.name}",
            {name: _field(name) for name in ("apiVersion", "kind", *fields)},
            name="{metadata.name}",
            tags="metadata.labels",
            when=_of(version),
            regionless=True,
            builtin=_is_of_the_cluster,
        )


QUERIES = tuple(
    ApiQuery(sort.group or "core", sort.plural, "items", right=sort.right) for sort in OBJECT_KINDS
)
KINDS = tuple(kind for sort in OBJECT_KINDS for kind in _kinds(sort))
