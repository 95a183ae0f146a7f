"""Objects of a cluster as a state has them: the provider keeps them as the API server tells them."""

from collections.abc import Iterator
from typing import Any

from policies.sources.convert import plain
from policies.sources.live.form import Kind, Reader, View
from policies.sources.live.kubernetes.sorts import SORTS, Sort
from policies.sources.live.question import Question

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces that Kubernetes makes for itself (Kubernetes, Namespaces, "Initial namespaces")."""
# Rules look there for settings by name.
_READ_IN_SYSTEM = ("ConfigMap",)
# Objects that the API server makes anew at each start (Kubernetes, Using RBAC, "Auto-reconciliation").
_BOOTSTRAPPED = ("kubernetes.io/bootstrapping", "rbac-defaults")
_BINDING = ("roleRef", "subjects")
_CLASS = (
    *("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion"),
    *("allowedTopologies", "mountOptions"),
)
# What kinds have beside metadata; `spec` where nothing is said (Kubernetes API Reference 1.36).
_FIELDS = {
    "ClusterRoleBinding": _BINDING,
    "ConfigMap": ("data",),
    "PodTemplate": ("template",),
    "RoleBinding": _BINDING,
    "StorageClass": _CLASS,
}
_JUDGED = frozenset((sort.group, sort.kind) for sort in SORTS if sort.whole)


def _field(name: str) -> Reader:
    """A field without the marks of what is not kept."""
    return lambda view: plain(view.at(name), name)


def _of(version: str) -> Reader:
    """Whether an object is in a version, and not made by a controller for an object that is judged itself."""

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
    """Whether it is part of Kubernetes, and nobody's to change."""
    about: Any = view.at("metadata")
    kind, name = view.at("kind"), str(about.get("name"))
    if kind == "Namespace":
        return name in SYSTEM
    if kind in ("ClusterRoleBinding", "RoleBinding"):
        label, value = _BOOTSTRAPPED
        usual = name == "cluster-admin" or name.startswith("system:")
        return usual and (about.get("labels") or {}).get(label) == value
    return kind not in _READ_IN_SYSTEM and about.get("namespace") in SYSTEM


def _kinds(sort: Sort) -> Iterator[Kind]:
    fields = ("metadata", *_FIELDS.get(sort.kind, ("spec",))) if sort.whole else ("metadata",)
    for version in sort.versions:
        yield Kind(
            sort.type(version),
            sort.question,
            "{metadata.namespace}/{metadata.name}" if sort.namespaced else "{metadata.name}",
            {name: _field(name) for name in ("apiVersion", "kind", *fields)},
            name="{metadata.name}",
            tags="metadata.labels",
            when=_of(version),
            everywhere=True,
            spared=_is_of_the_cluster,
        )


QUESTIONS = tuple(Question(sort.group or "core", sort.plural, "items", right=sort.right) for sort in SORTS)
KINDS = tuple(kind for sort in SORTS for kind in _kinds(sort))
