"""Policy documents of IAM as statements, and the grants of a role by all its policies."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.properties import each
from policies.stack import Stack

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ATTACHMENT = "aws:iam/policyAttachment:PolicyAttachment"
_ATTACHED_LIST = "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"


@dataclass(frozen=True)
class Statement:
    """A statement; single values and lists are tuples."""

    path: str
    allows: bool
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    principals: tuple[tuple[str, str], ...]
    """(kind, value) of each, such as ("Service", "ec2.amazonaws.com"); "*" is ("AWS", "*")."""
    condition: Mapping[str, Mapping[str, Any]]

    @property
    def is_everything(self) -> bool:
        """Return whether it allows every action, or all but some, on every resource."""
        every_action = any(not action.strip("*:") for action in self.actions) or bool(self.not_actions)
        return self.allows and every_action and any(map(_is_every, self.resources))

    def conditions(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(operator, key in lower case, values) of each condition."""
        for operator, keys in self.condition.items():
            for key, values in keys.items():
                yield operator, key.lower(), _tuple(values)


def _is_every(resource: str) -> bool:
    """Return whether an ARN, in any notation, matches every resource."""
    if not resource.strip("*:"):
        return True
    head, _, rest = resource.partition(":")
    return head == "arn" and rest.count(":") >= 4 and not rest.partition(":")[2].strip("*:/")


def statements(document: Any, path: str) -> list[Statement]:
    """The statements of a document, a JSON string or an object.

    Raises UndeterminedError if it is unknown or invalid.
    """
    if document is None or document == "":
        return []
    if not isinstance(document, dict):
        try:
            document = json.loads(document)
        except (TypeError, ValueError):
            raise UndeterminedError(f"{path} is not JSON") from None
    listed = document.get("Statement") if isinstance(document, dict) else None
    found = listed if isinstance(listed, list) else [listed]
    return [_read(one, f"{path}.Statement[{i}]") for i, one in enumerate(found) if isinstance(one, dict)]


def _read(one: Mapping[str, Any], path: str) -> Statement:
    principal = one.get("Principal") or {}
    named = principal if isinstance(principal, dict) else {"AWS": principal}
    condition = one.get("Condition")
    return Statement(
        path,
        one.get("Effect") == "Allow",
        _tuple(one.get("Action")),
        _tuple(one.get("NotAction")),
        _tuple(one.get("Resource")),
        tuple((kind, value) for kind, values in named.items() for value in _tuple(values)),
        {name: keys for name, keys in condition.items() if isinstance(keys, dict)}
        if isinstance(condition, dict)
        else {},
    )


def _tuple(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


@dataclass(frozen=True)
class Grant:
    """A policy of a role: its statements, or the name of a policy that AWS manages."""

    source: Resource
    path: str
    statements: tuple[Statement, ...] = ()
    managed: str = ""


def grants(role: Resource, stack: Stack) -> Iterator[Grant]:
    """All policies of a role. Raises UndeterminedError for an attached policy outside of the stack."""
    for path, inline in each(role.props, "inlinePolicies"):
        yield Grant(role, path, tuple(statements(inline.get("policy"), f"{path}.policy")))
    for own in stack.users(role, ROLE_POLICY, "role"):
        yield Grant(own, "policy", tuple(statements(own.props.get("policy"), "policy")))
    for value in role.raw("managedPolicyArns") or ():
        yield _attached(role, "managedPolicyArns", value, stack)
    for kind, key in ((ROLE_ATTACHMENT, "role"), (ATTACHMENT, "roles")):
        for one in stack.users(role, kind, key):
            yield _attached(one, "policyArn", one.raw("policyArn"), stack)
    for one in stack.users(role, _ATTACHED_LIST, "roleName"):
        for value in one.raw("policyArns") or ():
            yield _attached(one, "policyArns", value, stack)


def _attached(source: Resource, path: str, value: Any, stack: Stack) -> Grant:
    policy = stack.referred(source, value, path, POLICY)
    if policy is not None:
        return Grant(source, path, tuple(statements(policy.props.get("policy"), "policy")))
    managed = managed_name(value)
    if not managed:
        raise UndeterminedError(f"{path} of {source.name}: {value!r} is not in the stack")
    return Grant(source, path, managed=managed)


def managed_name(value: Any) -> str:
    """The name of an AWS managed policy; empty for any other ARN, and for an unknown one."""
    if is_unknown(value) or not isinstance(value, str) or ":iam::aws:policy/" not in value:
        return ""
    return value.rpartition("/")[2]
