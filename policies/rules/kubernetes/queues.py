"""Namespaces that may use the queues of a cluster."""

from collections.abc import Iterator

from policies.catalog import CATALOG, NotApplicableError, Violation
from policies.resource import Resource
from policies.rules.kubernetes.objects import CLUSTER_QUEUES, spec

# Operators of a label selector that require a label.
_NAMING = ("In", "Exists")
# A label that every namespace has (Kubernetes, Well-Known Labels).
_ON_ALL = "kubernetes.io/metadata.name"


@CATALOG.rule(
    "MLS-K8S-08",
    "medium",
    CLUSTER_QUEUES,
    "Every user who can create a LocalQueue in a namespace can take the GPUs of an open queue.",
    "Name the namespaces in namespaceSelector, by a label that their users cannot set.",
    ("kubernetes-sigs/kueue apis/kueue/v1beta1/clusterqueue_types.go, NamespaceSelector",),
)
def queues_are_for_named_namespaces(queue: Resource) -> Iterator[Violation]:
    """A ClusterQueue of Kueue is open to named namespaces only."""
    # Null, its default, chooses no namespace; `{}` chooses every one.
    chosen = spec(queue).get("namespaceSelector")
    if chosen is None:
        raise NotApplicableError("no namespace may use it")
    if chosen.get("matchLabels"):
        return
    named = [one for one in chosen.get("matchExpressions") or () if one and one.get("operator") in _NAMING]
    if not any(one.get("operator") == "In" or one.get("key") != _ON_ALL for one in named):
        yield Violation("it is open to namespaces that it does not name", "spec.namespaceSelector")
