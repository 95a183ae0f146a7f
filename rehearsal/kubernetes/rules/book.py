"""Rule book of the Kubernetes API server, and the types of its rules."""

from collections.abc import Iterator
from typing import Protocol

from rehearsal.core.model import Properties, Record
from rehearsal.core.rules.model import Book, Rule, Violation
from rehearsal.kubernetes.charts import ChartFacts, Crd
from rehearsal.kubernetes.kinds import builtin_namespaced, parse
from rehearsal.kubernetes.rules import accessors


class ClusterView(Protocol):
    """A rule's view of the cluster of an object."""

    @property
    def version(self) -> tuple[int, int]:
        """The version of its API server, such as (1, 36)."""

    def all(self, token: str) -> Iterator[Record]:
        """The objects of one type, oldest first."""

    def get(self, kind: str, namespace: str, name: str) -> Record | None:
        """One object; `namespace` is empty for kinds that have none."""

    def exists(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether an object exists, those of every new cluster included."""

    def releases(self) -> Iterator[tuple[Record, ChartFacts | None]]:
        """The Helm releases and their charts, None for an unknown chart."""

    def crds(self) -> Iterator[Crd]:
        """The custom kinds that the cluster serves."""


BOOK: Book[ClusterView] = Book("K8S")

# Topics besides types: every object, and every object of a kind without an SDK type.
ANY, CUSTOM = "kubernetes:*", "kubernetes:*:custom"

NAMESPACE, POD = "kubernetes:core/v1:Namespace", "kubernetes:core/v1:Pod"
SERVICE, SECRET = "kubernetes:core/v1:Service", "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
CLAIM, VOLUME = "kubernetes:core/v1:PersistentVolumeClaim", "kubernetes:core/v1:PersistentVolume"
QUOTA, LIMIT_RANGE = "kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:LimitRange"
DEPLOYMENT, REPLICA_SET = "kubernetes:apps/v1:Deployment", "kubernetes:apps/v1:ReplicaSet"
STATEFUL_SET, DAEMON_SET = "kubernetes:apps/v1:StatefulSet", "kubernetes:apps/v1:DaemonSet"
JOB, CRON_JOB = "kubernetes:batch/v1:Job", "kubernetes:batch/v1:CronJob"
SERVING = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET)
PODS = (POD, *SERVING, JOB, CRON_JOB)

CORE = "kubernetes/kubernetes pkg/apis/core/validation/validation.go"


def alone(
    token: str, inputs: Properties, *, custom: bool = False
) -> Iterator[tuple[Rule[ClusterView], Violation]]:
    """Violations by an object's inputs alone; `custom` when the SDK has no such type."""
    seen = _with_kind(token, inputs)
    for topic in _topics(token, custom):
        yield from BOOK.broken_alone(topic, seen)


def around(
    token: str, inputs: Properties, world: ClusterView, *, custom: bool = False
) -> Iterator[tuple[Rule[ClusterView], Violation]]:
    """Violations by an object in a cluster."""
    seen = _with_kind(token, inputs)
    for topic in _topics(token, custom):
        yield from BOOK.broken_around(topic, seen, world)


def objects(world: ClusterView, token: str, namespace: str | None = None) -> Iterator[Record]:
    """The objects of one type, in one namespace."""
    for record in world.all(token):
        if namespace is None or accessors.at(record.outputs, "metadata.namespace") == namespace:
            yield record


def existing(world: ClusterView, inputs: Properties) -> Record | None:
    """The object of this kind and name before the change."""
    kind, name = parse(f"kubernetes:{inputs['apiVersion']}:{inputs['kind']}"), accessors.name(inputs)
    builtin = "." not in kind.group or kind.group.endswith(".k8s.io")
    place = accessors.text(accessors.at(inputs, "metadata.namespace")) or ""
    if builtin and not place and builtin_namespaced(kind.kind):
        place = "default"
    return world.get(kind.kind, place, name) if name else None


def _topics(token: str, custom: bool) -> tuple[str, ...]:
    return (ANY, CUSTOM, token) if custom else (ANY, token)


def _with_kind(token: str, inputs: Properties) -> Properties:
    """Inputs with apiVersion and kind, which rules about every object read."""
    kind = parse(token)
    return {**inputs, "apiVersion": kind.api_version, "kind": kind.kind}
