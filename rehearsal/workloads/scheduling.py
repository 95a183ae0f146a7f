"""Scheduler: selects a node for a pod, or returns the reasons why none fits. Pure functions."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from infra import quantity

Resources = Mapping[str, Decimal]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Taint:
    """A taint of a node; every effect except PreferNoSchedule repels pods."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{{{self.key}: {self.value}}}"


@dataclass(frozen=True)
class SchedulerNode:
    """A node that exists or could be added; a resource absent from `capacity` is unknown, not zero.

    `extended` holds the resources of device plugins; absent ones are zero.
    """

    name: str
    group: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    capacity: Resources = field(default_factory=dict)
    extended: Resources = field(default_factory=dict)
    running: bool = True


def requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a pod: the sum over containers, or the largest init container where that is more."""
    found: dict[str, Decimal] = {}
    for container in spec.get("containers") or ():
        for name, amount in _requested(container).items():
            found[name] = found.get(name, Decimal(0)) + amount
    for container in spec.get("initContainers") or ():
        for name, amount in _requested(container).items():
            found[name] = max(found.get(name, Decimal(0)), amount)
    return found


def place(
    spec: Mapping[str, Any],
    nodes: Sequence[SchedulerNode],
    used: Mapping[str, Resources],
    neighbours: Mapping[str, Sequence[Labels]] | None = None,
) -> tuple[SchedulerNode | None, str]:
    """The first node that fits, or None and the scheduler's message.

    `used` and `neighbours` (the labels of the pods there) are keyed by node name.
    """
    if not nodes:
        return None, "no nodes available to schedule pods"
    wanted = requests(spec)
    beside = neighbours or {}
    verdicts = [
        (
            node,
            _obstacle(spec, wanted, node, used.get(node.name, {}))
            or _unwelcome(spec, beside.get(node.name, ())),
        )
        for node in nodes
    ]
    fitting = [node for node, reason in verdicts if reason is None]
    if fitting:
        return min(fitting, key=lambda node: not node.running), ""
    counts = Counter(reason for _, reason in verdicts if reason)
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return None, f"0/{len(nodes)} nodes are available: {reasons}."


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Taint) -> bool:
    """Return whether a pod's tolerations allow a node with this taint."""
    for toleration in tolerations:
        if toleration.get("effect") not in (None, "", taint.effect):
            continue
        key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
        if operator == "Exists" and key in ("", taint.key):
            return True
        if operator == "Equal" and key == taint.key and (toleration.get("value") or "") == taint.value:
            return True
    return False


def _requested(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    limits, requested = resources.get("limits") or {}, resources.get("requests") or {}
    return {name: quantity.parse(amount) for name, amount in {**limits, **requested}.items()}


def _obstacle(spec: Mapping[str, Any], wanted: Resources, node: SchedulerNode, used: Resources) -> str | None:
    """Reason why the pod cannot run on a node, with the scheduler's message and order."""
    tolerations = spec.get("tolerations") or ()
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not tolerates(tolerations, taint):
            return f"node(s) had untolerated taint {taint}"
    if not selects(spec, node.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    for name, amount in wanted.items():
        have = node.extended.get(name, Decimal(0)) if "/" in name else node.capacity.get(name)
        if have is not None and used.get(name, Decimal(0)) + amount > have:
            return f"Insufficient {name}"
    return None


def _unwelcome(spec: Mapping[str, Any], neighbours: Iterable[Labels]) -> str | None:
    """Return the reason why a pod must not share a node with its pods; only for `kubernetes.io/hostname`."""
    anti = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    for term in anti.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
        wanted = ((term.get("labelSelector") or {}).get("matchLabels") or {}).items()
        if term.get("topologyKey") != "kubernetes.io/hostname" or not wanted:
            continue
        if any(wanted <= labels.items() for labels in neighbours):
            return "node(s) didn't match pod anti-affinity rules"
    return None


def selects(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether nodeSelector and required node affinity allow a node with these labels."""
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != str(value) for key, value in selector.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or ()
    return not terms or any(
        all(_matches(expression, labels) for expression in term.get("matchExpressions") or ())
        for term in terms
    )


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), [str(item) for item in expression.get("values") or ()]
    verdicts: dict[str, Callable[[], bool]] = {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
        "Gt": lambda: value is not None and int(value) > int(values[0]),
        "Lt": lambda: value is not None and int(value) < int(values[0]),
    }
    return verdicts.get(str(expression["operator"]), lambda: False)()
