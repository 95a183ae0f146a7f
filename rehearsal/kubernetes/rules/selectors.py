"""Label selectors of any kind."""

from collections.abc import Iterator
from typing import Any

from rehearsal.core.model import UNKNOWN
from rehearsal.core.rules.model import Violation
from rehearsal.kubernetes.rules import grammar
from rehearsal.kubernetes.rules.accessors import absent, at, mapping, rows, text, texts
from rehearsal.kubernetes.rules.violations import forbidden, invalid, required

SOURCE = "kubernetes/apimachinery pkg/apis/meta/v1/validation/validation.go, ValidateLabelSelector"


def selector(path: str, chosen: Any) -> Iterator[Violation]:
    """Errors of a LabelSelector at `path`."""
    for key, value in mapping(at(chosen, "matchLabels")).items():
        labelled = text(value)
        wrong = grammar.label_key(str(key)) or (grammar.label_value(labelled) if labelled else None)
        if wrong:
            yield invalid(f"{path}.matchLabels", value, wrong)
    for index, row in rows(at(chosen, "matchExpressions")):
        yield from _requirement(f"{path}.matchExpressions[{index}]", row)


def _requirement(path: str, row: Any) -> Iterator[Violation]:
    operator, values = row.get("operator"), row.get("values")
    if operator in ("In", "NotIn"):
        if absent(values):
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if not absent(values):
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{path}.values", detail)
    elif operator is not UNKNOWN:
        yield invalid(f"{path}.operator", operator or "", "not a valid selector operator")
    key = row.get("key")
    if key is not UNKNOWN and (wrong := grammar.label_key(text(key) or "")):
        yield invalid(f"{path}.key", key, wrong)
    for index, value in texts(values):
        if wrong := grammar.label_value(value):
            yield invalid(f"{path}.values[{index}]", value, wrong)
