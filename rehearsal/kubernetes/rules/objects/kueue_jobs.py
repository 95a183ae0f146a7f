"""Rules of Kueue's webhook about Jobs, in the namespaces that it manages."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.kueue_config import configuration
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, namespace, text, unsure
from rehearsal.kubernetes.rules.book import BOOK, JOB, ClusterView, existing
from rehearsal.kubernetes.rules.pods.workloads import matches
from rehearsal.kubernetes.rules.violations import IMMUTABLE, invalid

_GROUP = "kueue.x-k8s.io"
_QUEUE, _PRIORITY = f"{_GROUP}/queue-name", f"{_GROUP}/priority-class"
_SOURCE = "kubernetes-sigs/kueue pkg/controller/jobframework/validation.go (v0.19.2)"


def _path(label: str) -> str:
    return f"metadata.labels[{label}]"


@BOOK.rule_around("K8S-KUEUE-017", JOB, source=_SOURCE)
def _queue_name(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """The label of a Job's queue is a name that a queue can have."""
    own = text(mapping(at(inputs, "metadata.labels")).get(_QUEUE))
    if own is not None and (wrong := grammar.subdomain(own)) and _watched(inputs, world):
        yield invalid(_path(_QUEUE), own, wrong)


@BOOK.rule_around("K8S-KUEUE-018", JOB, source=_SOURCE)
def _stays(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """A Job stays in its queue, unless its program suspends it, and keeps a priority."""
    before = existing(world, inputs)
    labels = at(inputs, "metadata.labels")
    if before is None or unsure(labels) or not _watched(inputs, world):
        return
    old, new = mapping(at(before.inputs, "metadata.labels")), mapping(labels)
    moves = (old.get(_QUEUE) or "") != (new.get(_QUEUE) or "")
    if moves and at(inputs, "spec.suspend") not in (True, UNKNOWN):
        yield invalid(_path(_QUEUE), new.get(_QUEUE), IMMUTABLE)
    if not absent(old.get(_PRIORITY)) and absent(new.get(_PRIORITY)):
        yield invalid(_path(_PRIORITY), "", "WorkloadPriorityClass cannot be removed from a workload")


def _watched(inputs: Properties, world: ClusterView) -> bool:
    """Return whether Kueue manages the Jobs of a namespace."""
    found = configuration(world.releases())
    space = world.get("Namespace", "", namespace(inputs))
    labels = mapping(at(space.inputs, "metadata.labels")) if space else {}
    return found is not None and matches(found.get("managedJobsNamespaceSelector") or {}, labels)
