"""Structural validation of objects as the API server decodes them, without conversion: `"3"` is no number."""

import re
from dataclasses import replace
from typing import Any

from rehearsal.core.model import CheckFailure, Properties
from rehearsal.core.schema import Schemas
from rehearsal.core.validate import validate
from rehearsal.kubernetes.kinds import HELM_RELEASE

# Any kind with an ObjectMeta serves: that of a custom kind is the same.
_ANY = "kubernetes:core/v1:ConfigMap"
# Quantities, which may be numbers although the SDK has strings: values of maps, and single ones.
# source: kubernetes/kubernetes staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go (UnmarshalJSON)
_AMOUNTS = re.compile(
    r"\b(requests|limits|hard|capacity|overhead|min|max|default|defaultRequest|maxLimitRequestRatio)"
    r"(\.[^.\[]+|\[[^\]]+\])$|\.(sizeLimit|divisor)$"
)
# Required by the SDK's types, but not by the API server.
_LEFT_OUT = (
    "LimitRangeSpec needs limits,",
    "NetworkPolicySpec needs podSelector,",
    "PodFailurePolicy needs rules,",
    "PriorityClass needs value,",
    "ResourceClaimTemplateSpec needs spec,",
)
# Whole numbers of 64 bits; all others have 32. source: kubernetes/api v0.36.2, types.go of the groups
_WIDE = re.compile(
    r"\b(activeDeadlineSeconds|count|expirationSeconds|fsGroup|generation|runAsGroup|runAsUser|"
    r"startingDeadlineSeconds|supplementalGroups|terminationGracePeriodSeconds|tolerationSeconds|"
    r"(max|min)(Items|Length|Properties))(\[\d+\])?$"
)


def misshapen(schemas: Schemas, token: str, inputs: Properties) -> list[CheckFailure]:
    """Unknown, missing and mistyped fields; for a kind without an SDK type only those of the metadata."""
    schema = schemas.resource(token)
    if token == HELM_RELEASE and schema:
        return validate(schema, inputs)
    if schema:
        return [one for one in validate(schema, inputs, _fits) if not one.reason.startswith(_LEFT_OUT)]
    known = schemas.resource(_ANY)
    assert known
    only = replace(known, inputs={"metadata": known.inputs["metadata"]})
    return validate(only, {"metadata": inputs.get("metadata")}, _fits)


def _fits(form: str, value: Any, path: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if form == "str":
        return isinstance(value, str) or (number and _AMOUNTS.search(path) is not None)
    if form == "bool":
        return isinstance(value, bool)
    bits = 63 if _WIDE.search(path) else 31
    return number and (form == "float" or (float(value).is_integer() and -(2**bits) <= value < 2**bits))
