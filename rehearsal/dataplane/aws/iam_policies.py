"""Evaluation of the identity and trust policies of emulated IAM roles."""

import fnmatch
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.core.model import Record
from rehearsal.core.properties import at
from rehearsal.core.state import State

_ROLE = "aws:iam/role:Role"
_INLINE = "aws:iam/rolePolicy:RolePolicy"
_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
_POLICY = "aws:iam/policy:Policy"
# Default audience of a pod's token.
STS = "sts.amazonaws.com"
_WEB_IDENTITY = "sts:AssumeRoleWithWebIdentity"
_ADMINISTRATOR = ":iam::aws:policy/AdministratorAccess"


@dataclass(frozen=True)
class AccessCheck:
    """One action on one resource (an ARN), with the known condition keys."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """A tuple is a key with several values."""


def role_record(state: State, arn: str) -> Record | None:
    """The role with this ARN."""
    return next((record for record in state.find(type=_ROLE) if record.outputs.get("arn") == arn), None)


def allowed(state: State, role: Record, request: AccessCheck) -> bool:
    """Return whether the role's inline and attached customer policies allow a request; an explicit Deny wins.

    Not evaluated: permissions boundaries, session and organisation policies, and AWS-managed policies other
    than AdministratorAccess (their documents are not known here, so they allow nothing). A condition that
    cannot be evaluated holds in a Deny, and does not in an Allow.
    """
    return permits(_documents(state, role), request)


def permits(documents: Iterable[Mapping[str, Any]], request: AccessCheck) -> bool:
    """Return whether policy documents together allow a request; an explicit Deny wins."""
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
    """Return whether the role's trust policy allows all these actions to a service; an explicit Deny wins.

    `*` as a principal is every principal, services too: IAM User Guide, "AWS global condition context keys",
    `aws:PrincipalIsAWSService`. The conditions of an Allow are not evaluated. A Deny counts only where its
    conditions are about what is known of the call, so that none is made up: the service and the account.
    """
    arn = str(role.outputs.get("arn") or "")
    context = {
        "aws:PrincipalIsAWSService": "true",
        "aws:PrincipalServiceName": service,
        "aws:SourceAccount": next(iter(arn.split(":")[4:5]), ""),
    }
    judged = {key.lower() for key, value in context.items() if value}
    granted: set[str] = set()
    denied: set[str] = set()
    for statement in _list(_parsed(role.inputs.get("assumeRolePolicy")).get("Statement")):
        principal = statement.get("Principal") or {}
        by_kind = principal if isinstance(principal, Mapping) else {"Service": principal}
        named = {service, "*"} & set(map(str, _list(by_kind.get("Service"))))
        conditions = statement.get("Condition") or {}
        if statement.get("Effect") == "Allow" and named:
            granted |= _named(statement, actions)
        elif (
            statement.get("Effect") == "Deny"
            and (named or "*" in _list(by_kind.get("AWS")))
            and {key.lower() for rows in conditions.values() for key in rows} <= judged
            and _conditions_hold(conditions, context)
        ):
            denied |= _named(statement, actions)
    return granted - denied == actions


def _named(statement: Mapping[str, Any], actions: frozenset[str]) -> set[str]:
    """Those of these actions that a statement names, or does not except."""
    others = "NotAction" in statement
    patterns = _list(statement.get("NotAction" if others else "Action"))
    return {one for one in actions if others != any(_like(one, pattern) for pattern in patterns)}


def trusts_role(role: Record, caller: str, session: str, actions: frozenset[str]) -> bool:
    """Return whether the role's trust policy allows all these actions to another role, by its ARN.

    A principal is an account, as its root or its number, or a role; an explicit Deny wins. `session`: the
    name that the caller gives to the new session. Not evaluated: principals that are sessions, external ids.
    """
    start, account = ":".join(caller.split(":")[:5]), caller.split(":")[4]
    principals = {"*", account, f"{start}:root", caller}
    context = {
        "aws:PrincipalArn": caller,
        "aws:PrincipalAccount": account,
        "sts:RoleSessionName": session,
    }
    allowed_to: set[str] = set()
    denied: set[str] = set()
    for statement in _list(_parsed(role.inputs.get("assumeRolePolicy")).get("Statement")):
        principal = statement.get("Principal") or {}
        named = _list(principal.get("AWS") if isinstance(principal, Mapping) else principal)
        denies = statement.get("Effect") == "Deny"
        if principals & set(map(str, named)) and _conditions_hold(
            statement.get("Condition") or {}, context, denies
        ):
            (denied if denies else allowed_to).update(_named(statement, actions))
    return allowed_to - denied == actions


def pods_denied(role: Record, cluster: Record, namespace: str, account: str, audience: str = STS) -> str:
    """The error for pods of a service account that request the role by their token; empty when allowed.

    `cluster` is the one whose issuer signs their tokens; one without an issuer is not judged.
    """
    issuer = str(at(cluster.outputs, "identities[0].oidcs[0].issuer") or "").removeprefix("https://")
    why = issuer and _trust_problem(role, issuer, f"system:serviceaccount:{namespace}:{account}", audience)
    if not why:
        return ""
    return (
        f"pods of the service account {namespace}/{account} will get AccessDenied: Not authorized to perform "
        f"{_WEB_IDENTITY}: {why} (role {role.id})"
    )


def _trust_problem(role: Record, issuer: str, subject: str, audience: str) -> str:
    """Reason why the role's trust policy denies a session to an OIDC token; empty when allowed.

    Only conditions on the token's subject and audience are evaluated.
    """
    reasons = [f"it trusts no token of {issuer}"]
    for statement in _list(_parsed(role.inputs.get("assumeRolePolicy")).get("Statement")):
        principal = statement.get("Principal") or {}
        providers = _list(principal.get("Federated")) if isinstance(principal, Mapping) else []
        acts = any(_like(_WEB_IDENTITY, pattern) for pattern in _list(statement.get("Action")))
        if statement.get("Effect") != "Allow" or not acts:
            continue
        named = [str(one).partition(":oidc-provider/")[2] for one in providers]
        if issuer not in named:
            reasons += [f"it trusts {one}, and the cluster's issuer is {issuer}" for one in named if one]
            continue
        context = {f"{issuer}:sub": subject, f"{issuer}:aud": audience}
        conditions = {
            operator: {key: value for key, value in rows.items() if key.endswith((":sub", ":aud"))}
            for operator, rows in (statement.get("Condition") or {}).items()
            if operator in ("StringEquals", "StringLike")
        }
        if _conditions_hold(conditions, context):
            return ""
        wanted = [f"{key} {_list(value)}" for rows in conditions.values() for key, value in rows.items()]
        reasons.append(f"it requires {', '.join(wanted)}, and the token has {subject} and {audience}")
    return reasons[-1]


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


def _applies(statement: Mapping[str, Any], request: AccessCheck) -> bool:
    if "Action" in statement:
        acts = any(_like(request.action, pattern) for pattern in _list(statement["Action"]))
    else:
        acts = not any(_like(request.action, pattern) for pattern in _list(statement.get("NotAction")))
    if "Resource" in statement:
        hits = any(_matches(request.resource, str(p)) for p in _list(statement["Resource"]))
    else:
        hits = not any(_matches(request.resource, str(p)) for p in _list(statement.get("NotResource")))
    denies = statement.get("Effect") == "Deny"
    return acts and hits and _conditions_hold(statement.get("Condition") or {}, request.context, denies)


def _conditions_hold(
    conditions: Mapping[str, Any], context: Mapping[str, str | tuple[str, ...]], unknown: bool = False
) -> bool:
    known = {key.lower(): value for key, value in context.items()}
    return all(
        _holds(operator, known.get(key.lower()), [str(item) for item in _list(expected)], unknown)
        for operator, rows in conditions.items()
        for key, expected in rows.items()
    )


def _holds(operator: str, value: str | tuple[str, ...] | None, values: list[str], unknown: bool) -> bool:
    """Evaluate one row of a condition; `unknown` is the result for an operator that is not known here.

    Source: IAM User Guide, "IAM JSON policy elements: Condition operators" and "Set operators for
    multi-valued context keys". A key with several values without such an operator counts as ForAnyValue.
    """
    scope, _, plain = operator.rpartition(":")
    if isinstance(value, tuple) and value and plain != "Null":
        each = [_holds(plain, one, values, unknown) for one in value]
        return all(each) if scope == "ForAllValues" else any(each)
    value = None if value == () else value
    bare = plain.removesuffix("IfExists")
    if bare == "Null":
        return (value is None) == (values[:1] == ["true"])
    if value is None and (bare != plain or scope):
        return bare != plain or scope == "ForAllValues"
    compare = _OPERATORS.get(bare.replace("Not", "", 1))
    if compare is None:
        return unknown
    found = isinstance(value, str) and any(compare(value, one) for one in values)
    return found != ("Not" in bare)


def _matches(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern of IAM, in which only `*` and `?` are special."""
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))


def _same_arn(arn: str, pattern: str) -> bool:
    """Compare the six parts of two ARNs one by one: `*` does not reach into the next."""
    given, wanted = arn.split(":", 5), pattern.split(":", 5)
    return len(given) == len(wanted) and all(map(_matches, given, wanted))


def _number(text: str) -> float:
    """The number of a text; NaN, of which no comparison is true, for any other."""
    try:
        return float(text)
    except ValueError:
        return math.nan


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, one: value == one,
    "StringEqualsIgnoreCase": lambda value, one: value.lower() == one.lower(),
    "StringLike": _matches,
    "ArnEquals": _same_arn,
    "ArnLike": _same_arn,
    "Bool": lambda value, one: value.lower() == one.lower(),
    "NumericEquals": lambda value, one: _number(value) == _number(one),
    "NumericLessThan": lambda value, one: _number(value) < _number(one),
    "NumericLessThanEquals": lambda value, one: _number(value) <= _number(one),
    "NumericGreaterThan": lambda value, one: _number(value) > _number(one),
    "NumericGreaterThanEquals": lambda value, one: _number(value) >= _number(one),
}


def _like(action: str, pattern: Any) -> bool:
    return fnmatch.fnmatchcase(action.lower(), str(pattern).lower())


def _parsed(document: Any) -> Mapping[str, Any]:
    found = json.loads(document) if isinstance(document, str) else document
    return found if isinstance(found, Mapping) else {}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
