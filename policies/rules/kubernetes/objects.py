"""How rules read objects of Kubernetes: their names, and which of them live together or name each other."""

from collections.abc import Iterator
from typing import Any

from policies.resource import Resource
from policies.stack import Stack

NAMESPACE = "kubernetes:core/v1:Namespace"
_QUEUES = "kubernetes:kueue.x-k8s.io"
CLUSTER_QUEUES = (f"{_QUEUES}/v1beta1:ClusterQueue", f"{_QUEUES}/v1beta2:ClusterQueue")
LOCAL_QUEUES = (f"{_QUEUES}/v1beta1:LocalQueue", f"{_QUEUES}/v1beta2:LocalQueue")


def metadata(resource: Resource) -> Any:
    """The metadata of an object, empty where it has none."""
    return resource.props.get("metadata") or {}


def spec(resource: Resource) -> Any:
    """The spec of an object, empty where it has none."""
    return resource.props.get("spec") or {}


def is_of_a_program(resource: Resource) -> bool:
    """Whether the cluster says that Pulumi manages it (pulumi-kubernetes provider.go, fieldManagerName)."""
    managers = metadata(resource).get("managedFields") or ()
    return any(str(one.get("manager")).startswith("pulumi-kubernetes") for one in managers if one)


def same_namespace(one: Resource, other: Resource) -> bool:
    """Whether two objects live in the same namespace."""
    return (metadata(one).get("namespace") or "default") == (metadata(other).get("namespace") or "default")


def living_in(namespace: Resource, stack: Stack, *kinds: str) -> Iterator[Resource]:
    """The objects of these kinds in a namespace of the stack."""
    for one in stack.all(*kinds):
        if _names(one, "metadata", "namespace", namespace, stack):
            yield one


def used_by(queue: Resource, stack: Stack) -> Iterator[Resource]:
    """The local queues that lead to a ClusterQueue."""
    for one in stack.all(*LOCAL_QUEUES):
        if _names(one, "spec", "clusterQueue", queue, stack):
            yield one


def _names(user: Resource, holder: str, key: str, named: Resource, stack: Stack) -> bool:
    """Whether a value below a property is the name of an object that lives in no namespace.

    A source that says from where the property comes is asked first: a preview may not know the name.
    """
    sources = [stack.by_urn[urn] for urn in user.references.get(holder, ()) if urn in stack.by_urn]
    same_kind = [source for source in sources if source.kind == named.kind]
    if same_kind:
        return named in same_kind
    value = (user.props.get(holder) or {}).get(key)
    return bool(value) and value == metadata(named).get("name")
