"""Deployments, StatefulSets, DaemonSets and ReplicaSets."""

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, pod, rows, text, unsure, whole
from rehearsal.kubernetes.rules.book import BOOK, DEPLOYMENT, REPLICA_SET, SERVING, STATEFUL_SET
from rehearsal.kubernetes.rules.violations import NEGATIVE, invalid, required

_SOURCE = "kubernetes/kubernetes pkg/apis/apps/validation/validation.go"
_DOCS = "pulumi-kubernetes 4.34.2 apps/v1 RollingUpdateDeployment.max_unavailable"


def matches(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector selects something with these labels."""
    selector = mapping(selector)
    if any(labels.get(key) != value for key, value in mapping(selector.get("matchLabels")).items()):
        return False
    for _, row in rows(selector.get("matchExpressions")):
        value, values = labels.get(str(row.get("key"))), row.get("values") or ()
        verdicts = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not verdicts.get(str(row.get("operator")), True):
            return False
    return True


@BOOK.rule("K8S-APP-001", *SERVING, source=_SOURCE)
def _selector_matches(inputs: Properties) -> Iterator[Violation]:
    """The selector selects the pods of the template."""
    selector, view = at(inputs, "spec.selector"), pod(inputs)
    labels = at(inputs, "spec.template.metadata.labels")
    if view is None or absent(selector) or unsure(selector) or unsure(labels) or list(_misspelt(selector)):
        return
    if not matches(selector, mapping(labels)):
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", dict(mapping(labels)), detail)


def _misspelt(selector: Any) -> Iterator[Violation]:
    for key, value in mapping(mapping(selector).get("matchLabels")).items():
        own = text(value)
        wrong = grammar.label_key(str(key))
        if wrong is None and own is not None:
            wrong = grammar.label_value(own)
        if wrong or (own is None and value is not UNKNOWN):
            yield invalid("spec.selector.matchLabels", value, wrong or "must be a text")


@BOOK.rule("K8S-APP-006", *SERVING, source=_SOURCE)
def _selector_labels(inputs: Properties) -> Iterator[Violation]:
    """The selector of a workload has valid labels."""
    yield from _misspelt(at(inputs, "spec.selector"))


@BOOK.rule("K8S-APP-002", *SERVING, source=_SOURCE)
def _some_selector(inputs: Properties) -> Iterator[Violation]:
    """The selector is there and selects something."""
    selector = at(inputs, "spec.selector")
    if selector is None:
        yield required("spec.selector")
    elif selector == {} or (
        isinstance(selector, dict)
        and not unsure(selector)
        and absent(selector.get("matchLabels"))
        and absent(selector.get("matchExpressions"))
    ):
        kind = str(inputs["kind"]).lower()
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")


@BOOK.rule("K8S-APP-003", DEPLOYMENT, STATEFUL_SET, REPLICA_SET, source=_SOURCE)
def _replicas(inputs: Properties) -> Iterator[Violation]:
    """There are no negative counts of replicas."""
    for key in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        number = whole(at(inputs, f"spec.{key}"))
        if number is not None and number < 0:
            yield invalid(f"spec.{key}", number, NEGATIVE)


@BOOK.rule("K8S-APP-004", DEPLOYMENT, source=_DOCS)
def _can_roll(inputs: Properties) -> Iterator[Violation]:
    """A rolling update may add pods or take some away, or it could never begin."""
    update = mapping(at(inputs, "spec.strategy.rollingUpdate"))
    if all(update.get(key) in (0, "0", "0%") for key in ("maxSurge", "maxUnavailable")):
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        yield invalid(path, update["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


@BOOK.rule("K8S-APP-007", DEPLOYMENT, source=_SOURCE)
def _rolls_by(inputs: Properties) -> Iterator[Violation]:
    """A rolling update uses counts or percentages of the replicas."""
    for key, most in (("maxSurge", None), ("maxUnavailable", 100)):
        path = f"spec.strategy.rollingUpdate.{key}"
        value = at(inputs, path)
        counts = isinstance(value, int | float | str) and not isinstance(value, bool)
        if counts and (wrong := grammar.count_or_share(value, most)):
            yield invalid(path, value, wrong)


@BOOK.rule("K8S-APP-005", STATEFUL_SET, source=_SOURCE)
def _no_deadline(inputs: Properties) -> Iterator[Violation]:
    """Pods of long-running workloads have no deadline."""
    view = pod(inputs)
    seconds = view.spec.get("activeDeadlineSeconds") if view else None
    if view and seconds is not None:
        yield invalid(f"{view.path}.activeDeadlineSeconds", seconds, "must not be specified")
