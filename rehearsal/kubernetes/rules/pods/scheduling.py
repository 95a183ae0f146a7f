"""Priority classes."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.kinds import facts
from rehearsal.kubernetes.rules.accessors import name, pod, text, whole
from rehearsal.kubernetes.rules.book import BOOK, PODS, ClusterView
from rehearsal.kubernetes.rules.violations import forbidden, no_pod, required, unsupported

_SOURCE = "kubernetes/kubernetes pkg/apis/scheduling/validation/validation.go"
PRIORITY_CLASS = "kubernetes:scheduling.k8s.io/v1:PriorityClass"
_HIGHEST = 1_000_000_000
_PREEMPTION = ("Never", "PreemptLowerPriority")


@BOOK.rule("K8S-PRIO-001", PRIORITY_CLASS, source=_SOURCE)
def _user_defined(inputs: Properties) -> Iterator[Violation]:
    """Names that begin with `system-`, and priorities above one billion, are the system's own."""
    own, value = name(inputs) or "", whole(inputs.get("value"))
    if own in facts()["builtin"]["PriorityClass"]:
        return
    if own.startswith("system-"):
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        yield forbidden("metadata.name", detail)
    elif value is not None and value > _HIGHEST:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")


@BOOK.rule("K8S-PRIO-003", PRIORITY_CLASS, source=_SOURCE)
def _preempts(inputs: Properties) -> Iterator[Violation]:
    """A priority class preempts lower ones, or never."""
    policy = inputs.get("preemptionPolicy")
    if policy == "":
        yield required("preemptionPolicy")
    elif policy not in (None, UNKNOWN, *_PREEMPTION):
        yield unsupported("preemptionPolicy", policy, _PREEMPTION)


@BOOK.rule_around(
    "K8S-PRIO-002", *PODS, source="kubernetes/kubernetes plugin/pkg/admission/priority/admission.go"
)
def _exists(inputs: Properties, world: ClusterView) -> Iterator[Violation]:
    """The priority class of a pod exists."""
    view = pod(inputs)
    wanted = text(view.spec.get("priorityClassName")) if view else None
    if view and wanted and not world.exists("PriorityClass", "", wanted):
        detail = f"no PriorityClass with name {wanted} was found"
        fix = "Create it first and depend on it."
        yield no_pod(inputs, f"{view.path}.priorityClassName", detail, fix)
