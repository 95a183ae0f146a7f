"""The people of a team, as the API server of a cluster knows them."""

import json
from collections.abc import Sequence
from typing import TypedDict

from pulumi_kubernetes import rbac

from infra.naming import GROUP_PREFIX

RBAC = "rbac.authorization.k8s.io"


class SubjectArgs(TypedDict):
    """A person or a group, by the exact name that the API server hears from whoever logs people in."""

    kind: str
    """`User` or `Group`."""
    name: str
    """The name; letters of another case are another name."""


def group(name: str) -> SubjectArgs:
    """A group of people."""
    return {"kind": "Group", "name": name}


def user(name: str) -> SubjectArgs:
    """One person, or what acts like one."""
    return {"kind": "User", "name": name}


def subjects(people: Sequence[SubjectArgs]) -> list[rbac.v1.SubjectArgs]:
    """Those that a role is bound to."""
    return [rbac.v1.SubjectArgs(api_group=RBAC, kind=one["kind"], name=one["name"]) for one in people]


def asked_by(people: Sequence[SubjectArgs]) -> str:
    """A CEL expression: whether a request comes from one of these people, or from a group of any team.

    Groups of teams are known by how their names begin, so that a team that was added since is one of them.
    """
    users = sorted({one["name"] for one in people if one["kind"] == "User"})
    own = {one["name"] for one in people if one["kind"] == "Group"}
    groups = sorted(name for name in own if not name.startswith(GROUP_PREFIX))
    said = [f"request.userInfo.groups.exists(group, group.startsWith('{GROUP_PREFIX}'))"]
    if groups:
        said.append(f"request.userInfo.groups.exists(group, group in {json.dumps(groups)})")
    if users:
        said.append(f"request.userInfo.username in {json.dumps(users)}")
    return said[0] if len(said) == 1 else f"({' || '.join(said)})"
