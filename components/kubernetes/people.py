"""Members of teams as subjects of the API server of a cluster."""

import json
from collections.abc import Sequence
from typing import TypedDict

from pulumi_kubernetes import rbac

from infra.naming import GROUP_PREFIX

RBAC = "rbac.authorization.k8s.io"


class SubjectArgs(TypedDict):
    """A person or a group, by the exact name that the API server receives from the identity provider."""

    kind: str
    """`User` or `Group`."""
    name: str
    """The name; it is case-sensitive."""


def group(name: str) -> SubjectArgs:
    """A group of people."""
    return {"kind": "Group", "name": name}


def user(name: str) -> SubjectArgs:
    """One person, or a service identity."""
    return {"kind": "User", "name": name}


def subjects(people: Sequence[SubjectArgs]) -> "list[rbac.v1.SubjectArgs]":
    """Subjects of a role binding."""
    return [rbac.v1.SubjectArgs(api_group=RBAC, kind=one["kind"], name=one["name"]) for one in people]


def asked_by(people: Sequence[SubjectArgs]) -> str:
    """A CEL expression: the request is from one of these people, a group of any team, or an account.

    Groups of teams are recognized by their prefix, so that a team that was added later is one of them.
    Accounts are those of the namespace of the request: no controller of the stack has one there, and members
    with the role `edit` can act as them, whatever rights an administrator gave to them.
    """
    users = sorted({one["name"] for one in people if one["kind"] == "User"})
    own = {one["name"] for one in people if one["kind"] == "Group"}
    groups = sorted(name for name in own if not name.startswith(GROUP_PREFIX))
    conditions = [
        f"request.userInfo.groups.exists(group, group.startsWith('{GROUP_PREFIX}')"
        " || group == 'system:serviceaccounts:' + request.namespace)"
    ]
    if groups:
        conditions.append(f"request.userInfo.groups.exists(group, group in {json.dumps(groups)})")
    if users:
        conditions.append(f"request.userInfo.username in {json.dumps(users)}")
    return conditions[0] if len(conditions) == 1 else f"({' || '.join(conditions)})"


def by_controllers(*names: str) -> str:
    """A CEL expression: the request is from one of these controllers of Kubernetes itself.

    They share an identity where `--use-service-account-credentials` is off.
    """
    accounts = (f"system:serviceaccount:kube-system:{name}" for name in names)
    return f"(request.userInfo.username in {json.dumps(['system:kube-controller-manager', *accounts])})"
