"""How rules read objects of Kubernetes: their names, and which of them live together or name each other."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.resource import Resource, UndeterminedError
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
    return namespace_of(one) == namespace_of(other)


def namespace_of(one: Resource) -> str:
    """The namespace in which an object lives."""
    return metadata(one).get("namespace") or "default"


def living_in(namespace: Resource, stack: Stack, *kinds: str) -> Iterator[Resource]:
    """The objects of these kinds in a namespace of the stack."""
    for kind in kinds:
        yield from _naming(namespace, stack, kind, "metadata", "namespace")


def used_by(queue: Resource, stack: Stack) -> Iterator[Resource]:
    """The local queues that lead to a ClusterQueue."""
    for kind in LOCAL_QUEUES:
        yield from _naming(queue, stack, kind, "spec", "clusterQueue")


def namespaces_with(stack: Stack, kind: str) -> frozenset[str]:
    """The names of the namespaces in which objects of a kind live."""
    return frozenset(map(namespace_of, stack.all(kind)))


def _naming(named: Resource, stack: Stack, kind: str, holder: str, key: str) -> Iterator[Resource]:
    """The objects of a kind that name, below a property, an object that lives in no namespace."""
    found, unknown = stack.once(_by_what_they_name, kind, holder, key, named.kind)
    yield from found.get(named.urn, ())
    yield from found.get(metadata(named).get("name") or "", ())
    if unknown:
        raise unknown


def _by_what_they_name(
    stack: Stack, kind: str, holder: str, key: str, named: str
) -> tuple[Mapping[str, list[Resource]], UndeterminedError | None]:
    """Objects by the URN of what they name, or by its name, and what is not known of further ones.

    A source that says from where the property comes is asked first: a preview may not know the name.
    """
    found: dict[str, list[Resource]] = {}
    unknown: UndeterminedError | None = None
    for user in stack.all(kind):
        sources = [stack.by_urn[urn] for urn in user.references.get(holder, ()) if urn in stack.by_urn]
        urns = [source.urn for source in sources if source.kind == named]
        try:
            value = "" if urns else (user.props.get(holder) or {}).get(key)
        except UndeterminedError as error:
            unknown = unknown or error
            continue
        for name in urns or ([str(value)] if value else []):
            found.setdefault(name, []).append(user)
    return found, unknown
