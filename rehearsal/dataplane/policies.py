"""May this role do that? The identity policies of emulated IAM roles, evaluated."""

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.state import State

_ROLE = "aws:iam/role:Role"
_INLINE = "aws:iam/rolePolicy:RolePolicy"
_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_POLICY = "aws:iam/policy:Policy"
_ADMINISTRATOR = ":iam::aws:policy/AdministratorAccess"


@dataclass(frozen=True)
class Request:
    """One action on one resource (an ARN), with the condition keys that are known about it."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def role_record(state: State, arn: str) -> Record | None:
    """The role with this ARN."""
    return next((record for record in state.find(type=_ROLE) if record.outputs.get("arn") == arn), None)


def allowed(state: State, role: Record, request: Request) -> bool:
    """Whether the role's inline and attached customer policies allow a request; an explicit Deny wins.

    Not evaluated: permissions boundaries, session and organisation policies, and AWS-managed policies other
    than AdministratorAccess (their texts are not known here, so they allow nothing). A statement with a
    condition that cannot be evaluated does not allow.
    """
    return permits(_documents(state, role), request)


def permits(documents: Iterable[Mapping[str, Any]], request: Request) -> bool:
    """Whether policy documents together allow a request; an explicit Deny wins."""
    verdict = False
    for document in documents:
        for statement in _list(document.get("Statement")):
            if not _applies(statement, request):
                continue
            if statement.get("Effect") == "Deny":
                return False
            verdict = True
    return verdict


def trusts(role: Record, service: str, actions: frozenset[str]) -> bool:
    """Whether the role's trust policy lets a service do all these actions."""
    granted: set[str] = set()
    for statement in _list(_parsed(role.inputs.get("assumeRolePolicy")).get("Statement")):
        principal = statement.get("Principal") or {}
        services = _list(principal.get("Service")) if isinstance(principal, Mapping) else []
        if statement.get("Effect") == "Allow" and service in services:
            granted.update(
                action for action in actions if any(_like(action, p) for p in _list(statement.get("Action")))
            )
    return granted == actions


def _documents(state: State, role: Record) -> Iterator[Mapping[str, Any]]:
    names = {role.id, role.outputs.get("name"), role.outputs.get("arn")}
    for inline in role.inputs.get("inlinePolicies") or ():
        yield _parsed(inline.get("policy"))
    for record in state.find(type=_INLINE):
        if record.inputs.get("role") in names:
            yield _parsed(record.inputs.get("policy"))
    arns = set(role.inputs.get("managedPolicyArns") or ())
    arns.update(
        record.inputs.get("policyArn")
        for record in state.find(type=_ATTACHMENT)
        if record.inputs.get("role") in names
    )
    for record in state.find(type=_POLICY):
        if record.outputs.get("arn") in arns:
            yield _parsed(record.inputs.get("policy"))
    if any(str(arn).endswith(_ADMINISTRATOR) for arn in arns):
        yield {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def _applies(statement: Mapping[str, Any], request: Request) -> bool:
    if "Action" in statement:
        acts = any(_like(request.action, pattern) for pattern in _list(statement["Action"]))
    else:
        acts = not any(_like(request.action, pattern) for pattern in _list(statement.get("NotAction")))
    if "Resource" in statement:
        hits = any(fnmatch.fnmatchcase(request.resource, str(p)) for p in _list(statement["Resource"]))
    else:
        hits = not any(
            fnmatch.fnmatchcase(request.resource, str(p)) for p in _list(statement.get("NotResource"))
        )
    return acts and hits and _conditions_hold(statement.get("Condition") or {}, request.context)


def _conditions_hold(conditions: Mapping[str, Any], context: Mapping[str, str]) -> bool:
    known = {key.lower(): value for key, value in context.items()}
    for operator, rows in conditions.items():
        for key, expected in rows.items():
            value, values = known.get(key.lower()), [str(item) for item in _list(expected)]
            holds = {
                "StringEquals": value in values,
                "StringNotEquals": value not in values,
                "StringLike": value is not None and any(fnmatch.fnmatchcase(value, v) for v in values),
                "ArnEquals": value in values,
                "ArnLike": value is not None and any(fnmatch.fnmatchcase(value, v) for v in values),
                "Bool": value is not None and value in [item.lower() for item in values],
            }.get(operator, False)
            if not holds:
                return False
    return True


def _like(action: str, pattern: Any) -> bool:
    return fnmatch.fnmatchcase(action.lower(), str(pattern).lower())


def _parsed(document: Any) -> Mapping[str, Any]:
    found = json.loads(document) if isinstance(document, str) else document
    return found if isinstance(found, Mapping) else {}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
