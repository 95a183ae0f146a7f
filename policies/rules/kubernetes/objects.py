"""Kubernetes objects: metadata, namespaces, and references between them."""

from collections.abc import Iterator, Mapping
from typing import Any

from policies.resource import Resource, UndeterminedError
from policies.stack import Stack

NAMESPACE = "kubernetes:core/v1:Namespace"
_QUEUES = "kubernetes:kueue.x-k8s.io"
CLUSTER_QUEUES = (f"{_QUEUES}/v1beta1:ClusterQueue", f"{_QUEUES}/v1beta2:ClusterQueue")
RESOURCE_FLAVORS = (f"{_QUEUES}/v1beta1:ResourceFlavor", f"{_QUEUES}/v1beta2:ResourceFlavor")
LOCAL_QUEUES = (f"{_QUEUES}/v1beta1:LocalQueue", f"{_QUEUES}/v1beta2:LocalQueue")


def metadata(resource: Resource) -> Any:
    """The metadata of an object, or empty."""
    return resource.props.get("metadata") or {}


def spec(resource: Resource) -> Any:
    """The spec of an object, or empty."""
    return resource.props.get("spec") or {}


def is_of_a_program(resource: Resource) -> bool:
    """Return whether Pulumi manages it, by its managers (pulumi-kubernetes provider.go, fieldManagerName)."""
    managers = metadata(resource).get("managedFields") or ()
    return any(str(one.get("manager")).startswith("pulumi-kubernetes") for one in managers if one)


def namespace_of(one: Resource) -> str:
    """The namespace of an object."""
    return metadata(one).get("namespace") or "default"


def objects_in(namespace: Resource, stack: Stack, *kinds: str) -> Iterator[Resource]:
    """The objects of these kinds in a namespace of the stack."""
    for kind in kinds:
        yield from _naming(namespace, stack, kind, "metadata", "namespace")


def local_queues_of(queue: Resource, stack: Stack) -> Iterator[Resource]:
    """The local queues of a ClusterQueue."""
    for kind in LOCAL_QUEUES:
        yield from _naming(queue, stack, kind, "spec", "clusterQueue")


def namespaces_with(stack: Stack, kind: str) -> frozenset[str]:
    """Names of the namespaces with objects of a kind."""
    return frozenset(map(namespace_of, stack.all(kind)))


def _naming(named: Resource, stack: Stack, kind: str, holder: str, key: str) -> Iterator[Resource]:
    """The objects of a kind that refer, in a property, to a cluster-wide object."""
    found, unknown = stack.once(_by_target, kind, holder, key, named.kind)
    yield from found.get(named.urn, ())
    yield from found.get(metadata(named).get("name") or "", ())
    if unknown:
        raise unknown


def _by_target(
    stack: Stack, kind: str, holder: str, key: str, named: str
) -> tuple[Mapping[str, list[Resource]], UndeterminedError | None]:
    """Objects by the URN or the name of their target, and the error of objects with an unknown target.

    A reference of the source takes precedence: a preview may not know the name.
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
