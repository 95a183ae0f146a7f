"""The grammar of IAM policy documents. Source: IAM User Guide, "Grammar of the IAM JSON policy language"."""

import json
import re
from collections.abc import Iterator
from typing import Any

_VERSIONS = ("2012-10-17", "2008-10-17")
_ELEMENTS = frozenset(
    {
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    }
)
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_PRINCIPAL = re.compile(r"\*|\d{12}|arn:aws[a-z-]*:(iam|sts)::(\d{12}|aws):\S+|A[A-Z0-9]{15,}")
_PRINCIPAL_KINDS = frozenset({"AWS", "Service", "Federated", "CanonicalUser"})
_RESOURCE = re.compile(r"\*|arn:(aws[a-z-]*|\*):\S*")


def problems(text: object, *, principals: bool | None = None) -> Iterator[str]:
    """What is wrong with a document (JSON text or the object itself).

    `principals`: True when every statement must name one (resource and trust policies), False when none may.
    """
    try:
        document = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        yield f"MalformedPolicyDocument: it is not JSON ({error})"
        return
    if not isinstance(document, dict):
        yield "MalformedPolicyDocument: it must be a JSON object"
        return
    strange = set(document) - {"Version", "Id", "Statement"}
    if strange:
        yield f"MalformedPolicyDocument: unknown element {', '.join(sorted(strange))}"
    if document.get("Version", _VERSIONS[0]) not in _VERSIONS:
        yield f"MalformedPolicyDocument: Version must be {_VERSIONS[0]}"
    statements = document.get("Statement")
    if not statements:
        yield "MalformedPolicyDocument: it has no Statement"
        return
    for index, statement in enumerate(_many(statements)):
        for problem in _statement(statement, principals):
            yield f"MalformedPolicyDocument: statement {index}: {problem}"


def _statement(statement: Any, principals: bool | None) -> Iterator[str]:
    if not isinstance(statement, dict):
        yield "must be an object"
        return
    strange = set(statement) - _ELEMENTS
    if strange:
        yield f"unknown element {', '.join(sorted(strange))}"
    if statement.get("Effect") not in ("Allow", "Deny"):
        yield f"Effect must be Allow or Deny, not {statement.get('Effect')!r}"
    for one, other in (("Action", "NotAction"), ("Principal", "NotPrincipal"), ("Resource", "NotResource")):
        if one in statement and other in statement:
            yield f"{one} and {other} exclude each other"
    if "Action" not in statement and "NotAction" not in statement:
        yield "it has no Action"
    for action in (*_many(statement.get("Action")), *_many(statement.get("NotAction"))):
        if not isinstance(action, str) or not _ACTION.fullmatch(action):
            yield f"{action!r} is no action (service:Name)"
    for resource in (*_many(statement.get("Resource")), *_many(statement.get("NotResource"))):
        if not isinstance(resource, str) or not _RESOURCE.fullmatch(resource):
            yield f"{resource!r} is no ARN"
    named = "Principal" in statement or "NotPrincipal" in statement
    if principals is not None and principals is not named:
        yield "it names no Principal" if principals else "a policy of an identity may name no Principal"
    if principals is False and "Resource" not in statement and "NotResource" not in statement:
        yield "it has no Resource"
    yield from _principals(statement.get("Principal", statement.get("NotPrincipal")))
    yield from _conditions(statement.get("Condition", {}))


def _principals(principal: Any) -> Iterator[str]:
    if principal is None or principal == "*":
        return
    if not isinstance(principal, dict):
        yield "Principal must be * or an object"
        return
    for kind, values in principal.items():
        if kind not in _PRINCIPAL_KINDS:
            yield f"unknown kind of Principal {kind}"
        for value in _many(values):
            if kind == "AWS" and (not isinstance(value, str) or not _PRINCIPAL.fullmatch(value)):
                yield f"invalid principal {value!r}"
            if kind == "Service" and (not isinstance(value, str) or "." not in value):
                yield f"invalid service principal {value!r}"


def _conditions(condition: Any) -> Iterator[str]:
    if not isinstance(condition, dict):
        yield "Condition must be an object"
        return
    for operator, keys in condition.items():
        if not isinstance(keys, dict):
            yield f"condition {operator} must be an object of keys and values"


def principal_arns(text: object) -> list[str]:
    """The ARNs of roles and users that a document names as principals."""
    try:
        document = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return []
    statements = _many(document.get("Statement")) if isinstance(document, dict) else []
    found: list[str] = []
    for statement in statements:
        principal = statement.get("Principal") if isinstance(statement, dict) else None
        if isinstance(principal, dict):
            found += [one for one in _many(principal.get("AWS")) if isinstance(one, str)]
    return found


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
