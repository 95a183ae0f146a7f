"""Node selectors and node affinity of pods."""

from collections.abc import Iterator

from rehearsal.core.model import UNKNOWN, Properties
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import Object, absent, at, pod, rows, text, texts
from rehearsal.kubernetes.rules.book import BOOK, CORE, PODS
from rehearsal.kubernetes.rules.violations import forbidden, invalid, required

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def _requirements(inputs: Properties) -> Iterator[tuple[str, Object]]:
    """Every requirement on node labels with its path, preferred ones included."""
    view = pod(inputs)
    if view is None:
        return
    base = f"{view.path}.affinity.nodeAffinity"
    affinity = at(view.spec, "affinity.nodeAffinity")
    needed = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    wished = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = [(f"{base}.{needed}[{index}]", term) for index, term in rows(at(affinity, needed))]
    terms += [(f"{base}.{wished}[{index}].preference", at(row, "preference"))
              for index, row in rows(at(affinity, wished))]  # fmt: skip
    for path, term in terms:
        for index, row in rows(at(term, "matchExpressions")):
            yield f"{path}.matchExpressions[{index}]", row


@BOOK.rule("K8S-AFF-001", *PODS, source=CORE)
def _node_requirements(inputs: Properties) -> Iterator[Violation]:
    """A requirement on nodes has an operator and the number of values that it takes."""
    for path, row in _requirements(inputs):
        operator, values = row.get("operator"), row.get("values")
        if operator is UNKNOWN or values is UNKNOWN:
            continue
        if operator not in _OPERATORS:
            yield invalid(f"{path}.operator", operator or "", "not a valid selector operator")
        elif operator in ("In", "NotIn") and absent(values):
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and not absent(values):
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", detail)
        elif operator in ("Gt", "Lt") and (not isinstance(values, list) or len(values) != 1):
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(f"{path}.values", detail)


@BOOK.rule("K8S-AFF-002", *PODS, source=CORE)
def _node_labels(inputs: Properties) -> Iterator[Violation]:
    """A requirement on nodes uses valid labels."""
    for path, row in _requirements(inputs):
        key = row.get("key")
        wrong = None if key is UNKNOWN else grammar.label_key(text(key) or "")
        if wrong:
            yield invalid(f"{path}.key", key, wrong)
        for index, value in texts(row.get("values")):
            if wrong := grammar.label_value(value):
                yield invalid(f"{path}.values[{index}]", value, wrong)
