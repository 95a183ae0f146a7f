"""Renders `aws.iam.get_policy_document` as the provider does. Source: its registry documentation."""

import json
import zlib
from typing import Any

from rehearsal.core.model import Properties

_VERSION = "2012-10-17"


def render(args: Properties) -> Properties:
    """The arguments with `json` (indented by two) and `minifiedJson` filled in."""
    statements: list[dict[str, Any]] = []
    for source in args.get("sourcePolicyDocuments") or []:
        statements += _statements(source)
    for given in args.get("statements") or []:
        statements.append(_statement(given))
    for override in args.get("overridePolicyDocuments") or []:
        for statement in _statements(override):
            sid = statement.get("Sid")
            statements = [one for one in statements if not sid or one.get("Sid") != sid] + [statement]
    document: dict[str, Any] = {"Version": args.get("version") or _VERSION}
    if args.get("policyId"):
        document["Id"] = args["policyId"]
    document["Statement"] = statements
    minified = json.dumps(document, separators=(",", ":"))
    return {
        **args,
        "id": str(zlib.crc32(minified.encode())),
        "json": json.dumps(document, indent=2),
        "minifiedJson": minified,
    }


def _statements(source: str) -> list[dict[str, Any]]:
    found = json.loads(source).get("Statement") or []
    return found if isinstance(found, list) else [found]


def _statement(given: Properties) -> dict[str, Any]:
    statement: dict[str, Any] = {}
    if given.get("sid"):
        statement["Sid"] = given["sid"]
    statement["Effect"] = given.get("effect") or "Allow"
    for name, word in (("actions", "Action"), ("notActions", "NotAction")):
        if given.get(name):
            statement[word] = _one_or_many(given[name])
    for name, word in (("resources", "Resource"), ("notResources", "NotResource")):
        if given.get(name):
            statement[word] = _one_or_many(given[name])
    for name, word in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if given.get(name):
            statement[word] = _principals(given[name])
    if given.get("conditions"):
        conditions: dict[str, dict[str, Any]] = {}
        for one in given["conditions"]:
            conditions.setdefault(one["test"], {})[one["variable"]] = _one_or_many(
                one["values"], ordered=True
            )
        statement["Condition"] = conditions
    return statement


def _principals(given: list[Properties]) -> Any:
    found: dict[str, list[str]] = {}
    for one in given:
        found.setdefault(one["type"], []).extend(one["identifiers"])
    if found == {"*": ["*"]}:
        return "*"
    return {kind: _one_or_many(values) for kind, values in found.items()}


def _one_or_many(values: list[Any], *, ordered: bool = False) -> Any:
    """A single value is no list; sets are sorted in reverse, as by the provider, lists keep their order."""
    if len(values) == 1:
        return values[0]
    return list(values) if ordered else sorted(values, reverse=True)
