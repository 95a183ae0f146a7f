"""Authorization of service accounts by role bindings (RBAC)."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.kubernetes.clusters import KubeCluster, namespace_of

Account = tuple[str, str]
"""Namespace and name of a service account."""
Target = tuple[str, str, str]
"""API group ("" for the core group), resource in the plural, namespace."""


def may(cluster: KubeCluster, account: Account, verb: str, target: Target, name: str = "") -> bool:
    """Return whether an account may `verb` a `target`, or only its object `name`."""
    return any(_allows(rule, verb, target, name) for rule in _rules(cluster, account, target[2]))


def _rules(cluster: KubeCluster, account: Account, namespace: str) -> Iterator[Mapping[str, Any]]:
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in cluster.objects(kind):
            if kind == "RoleBinding" and namespace_of(binding.outputs) != namespace:
                continue
            subjects = binding.inputs.get("subjects") or ()
            if not any(_is(subject, account) for subject in subjects):
                continue
            reference = binding.inputs.get("roleRef") or {}
            inside = namespace if reference.get("kind") == "Role" else ""
            role = cluster.get(str(reference.get("kind")), inside, str(reference.get("name")))
            yield from (role.inputs.get("rules") or ()) if role else ()


def _is(subject: Mapping[str, Any], account: Account) -> bool:
    namespace, name = account
    if subject.get("kind") == "ServiceAccount":
        return (subject.get("namespace"), subject.get("name")) == account
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    user = f"system:serviceaccount:{namespace}:{name}"
    return subject.get("name") in (groups if subject.get("kind") == "Group" else (user,))


def _allows(rule: Mapping[str, Any], verb: str, target: Target, name: str) -> bool:
    group, resource, _ = target
    asked = {"verbs": verb, "apiGroups": group, "resources": resource}
    return name in (rule.get("resourceNames") or (name,)) and all(
        value in (rule.get(key) or ()) or "*" in (rule.get(key) or ()) for key, value in asked.items()
    )
