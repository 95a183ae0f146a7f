"""HorizontalPodAutoscalers (autoscaling/v2)."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, rows, whole
from rehearsal.kubernetes.rules.book import BOOK
from rehearsal.kubernetes.rules.violations import forbidden, invalid, required, unsupported

SCALER = "kubernetes:autoscaling/v2:HorizontalPodAutoscaler"
_SOURCE = "kubernetes/kubernetes pkg/apis/autoscaling/validation/validation.go"
# Type of a metric -> the field that describes it.
_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_LONGEST_S, _LONGEST_PERIOD_S = 3600, 1800


@BOOK.rule("K8S-HPA-001", SCALER, source=f"{_SOURCE} (validateHorizontalPodAutoscalerSpec)")
def _replicas(inputs: Properties) -> Iterator[Violation]:
    """The least number of replicas is 1 or more, and the most is not below it."""
    least, most = whole(at(inputs, "spec.minReplicas")), whole(at(inputs, "spec.maxReplicas"))
    if least is not None and least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most is not None and most < 1:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most is not None and most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


@BOOK.rule("K8S-HPA-002", SCALER, source=f"{_SOURCE} (ValidateCrossVersionObjectReference)")
def _target(inputs: Properties) -> Iterator[Violation]:
    """An autoscaler names the kind and the name of what it scales."""
    target = at(inputs, "spec.scaleTargetRef")
    for key in ("kind", "name"):
        if isinstance(target, dict) and absent(target.get(key)):
            yield required(f"spec.scaleTargetRef.{key}")


@BOOK.rule("K8S-HPA-003", SCALER, source=f"{_SOURCE} (validateMetricSpec, validateMetricTarget)")
def _metrics(inputs: Properties) -> Iterator[Violation]:
    """A metric is described by the field of its type, and has one target above zero."""
    for index, row in rows(at(inputs, "spec.metrics")):
        here, kind = f"spec.metrics[{index}]", row.get("type")
        if absent(kind):
            yield required(f"{here}.type", "must specify a metric source type")
            continue
        if kind is UNKNOWN:
            continue
        if kind not in _METRICS:
            yield unsupported(f"{here}.type", kind, tuple(_METRICS))
            continue
        own = _METRICS[kind]
        if row.get(own) is None:
            detail = "must populate information for the given metric source"
            yield required(f"{here}.{own}", detail)
        for other in _METRICS.values():
            if other != own and row.get(other) is not None:
                yield forbidden(f"{here}.{other}", "must populate the given metric source only")
        target = mapping(at(row, f"{own}.target"))
        values = ("averageUtilization", "averageValue", "value")
        if target and UNKNOWN not in target.values() and all(target.get(key) is None for key in values):
            yield required(f"{here}.{own}.target.averageUtilization", "must set a target")
        share = whole(target.get("averageUtilization"))
        if share is not None and share < 1:
            yield invalid(f"{here}.{own}.target.averageUtilization", share, "must be greater than 0")


@BOOK.rule("K8S-HPA-004", SCALER, source=f"{_SOURCE} (validateBehavior, validateScalingPolicy)")
def _behavior(inputs: Properties) -> Iterator[Violation]:
    """Scaling waits for an hour at most; its policies have a value and a period up to half an hour."""
    for way in ("scaleUp", "scaleDown"):
        base, rules = f"spec.behavior.{way}", mapping(at(inputs, f"spec.behavior.{way}"))
        window = whole(rules.get("stabilizationWindowSeconds"))
        if window is not None and not 0 <= window <= _LONGEST_S:
            wrong = (
                "must be greater than or equal to zero"
                if window < 0
                else f"must be less than or equal to {_LONGEST_S}"
            )
            yield invalid(f"{base}.stabilizationWindowSeconds", window, wrong)
        for index, row in rows(rules.get("policies")):
            here = f"{base}.policies[{index}]"
            value, period, kind = whole(row.get("value")), whole(row.get("periodSeconds")), row.get("type")
            if kind not in ("Pods", "Percent", UNKNOWN, None):
                yield unsupported(f"{here}.type", kind, ("Percent", "Pods"))
            if value is not None and value < 1:
                yield invalid(f"{here}.value", value, "must be greater than zero")
            if period is not None and not 1 <= period <= _LONGEST_PERIOD_S:
                wrong = (
                    "must be greater than zero"
                    if period < 1
                    else f"must be less than or equal to {_LONGEST_PERIOD_S}"
                )
                yield invalid(f"{here}.periodSeconds", period, wrong)
