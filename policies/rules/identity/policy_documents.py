"""Policy documents of IAM as statements, and the grants of a role by all its policies."""

import json
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from policies.resource import Resource, UndeterminedError, is_unknown
from policies.rules.properties import each
from policies.stack import Stack

ROLE, POLICY = "aws:iam/role:Role", "aws:iam/policy:Policy"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE_ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ATTACHMENT = "aws:iam/policyAttachment:PolicyAttachment"
_ATTACHED_LIST = "aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive"

# `principalSet://goog/public:all` is the newer name of allUsers (IAM, "Principal identifiers").
_PUBLIC = ("allusers", "allauthenticatedusers", "principalset://goog/public:all")
_LETTERS = frozenset(string.ascii_lowercase)


@dataclass(frozen=True)
class Statement:
    """A statement; single values and lists are tuples."""

    path: str
    allows: bool
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    principals: tuple[tuple[str, str], ...]
    """(kind, value) of each, such as ("Service", "ec2.amazonaws.com"); "*", and an Allow with NotPrincipal,
    are ("AWS", "*")."""
    condition: Mapping[str, Mapping[str, Any]]

    @property
    def is_everything(self) -> bool:
        """Return whether it allows every action, or all but some, on every resource, or on all but some."""
        every_action = _are_every_action(self.actions) or self.inverts_actions
        return (
            self.allows and every_action and (any(map(_is_every, self.resources)) or self._inverts_resources)
        )

    @property
    def inverts_actions(self) -> bool:
        """Return whether it names the actions that it leaves out, and leaves out fewer than all.

        IAM User Guide, "IAM JSON policy elements: NotAction": in an Allow, all other actions of all services.
        """
        return bool(self.not_actions) and not any(map(_is_every_action, self.not_actions))

    @property
    def _inverts_resources(self) -> bool:
        """IAM User Guide, "IAM JSON policy elements: NotResource": in an Allow, all other resources."""
        return bool(self.not_resources) and not any(map(_is_every, self.not_resources))

    def allows_action(self, action: str) -> bool:
        """Return whether an action, such as `sts:AssumeRole`, is among those of the statement."""
        listed = self.actions or self.not_actions
        found = any(fnmatchcase(action.lower(), _glob(one)) for one in listed)
        return found if self.actions else bool(self.not_actions) and not found

    def conditions(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(operator, key in lower case, values) of each condition."""
        for operator, keys in self.condition.items():
            for key, values in keys.items():
                yield operator, key.lower(), _tuple(values)


def _are_every_action(actions: tuple[str, ...]) -> bool:
    """Return whether patterns, alone or together as `a*` to `z*`, match every action."""
    letters = {one[0].lower() for one in actions if one and not one[1:].strip("*?:")}
    return any(map(_is_every_action, actions)) or letters >= _LETTERS


def _is_every_action(action: str) -> bool:
    return not action.strip("*?:")


def _is_every(resource: str) -> bool:
    """Return whether an ARN, in any notation, matches every resource."""
    if not resource.strip("*?:"):
        return True
    head, _, rest = resource.partition(":")
    service = rest.partition(":")[2]
    return head == "arn" and (not rest.strip("*") or (":" in rest and not service.strip("*?:/")))


def _glob(pattern: str) -> str:
    """A pattern of IAM for `fnmatch`, which also has sets in brackets."""
    return pattern.lower().replace("[", "[[]")


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


def is_public(member: Any) -> bool:
    """Return whether a member of a policy of Google Cloud is everybody, or every user of Google."""
    return str(member).lower() in _PUBLIC


def bindings(document: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, binding) of a policy of Google Cloud. Raises UndeterminedError if it is unknown or invalid."""
    try:
        found = json.loads(document or "{}").get("bindings") or ()
    except (TypeError, ValueError, AttributeError):
        raise UndeterminedError(f"{path} is not a policy in JSON") from None
    yield from ((f"{path}.bindings[{i}]", one) for i, one in enumerate(found) if isinstance(one, dict))


def _read(one: Mapping[str, Any], path: str) -> Statement:
    allows = one.get("Effect") == "Allow"
    # IAM User Guide, NotPrincipal: an Allow is for everyone else, also for anonymous users.
    everyone = "*" if allows and one.get("NotPrincipal") else {}
    principal = one.get("Principal") or everyone
    named = principal if isinstance(principal, dict) else {"AWS": principal}
    condition = one.get("Condition")
    return Statement(
        path,
        allows,
        _tuple(one.get("Action")),
        _tuple(one.get("NotAction")),
        _tuple(one.get("Resource")),
        _tuple(one.get("NotResource")),
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
