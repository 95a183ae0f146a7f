"""Access of the members of all teams to the clusters of the project."""

import hashlib
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from components.base import Component, Options
from components.gcp import iam
from components.kubernetes.people import SubjectArgs, group, user
from infra.catalog.gcp.access import member_problems
from infra.errors import UserError
from infra.naming import sanitize

ROLE = "roles/container.clusterViewer"
"""Find clusters and connect to them (`container.clusters.get`, `.list`, `.connect`), and no more: the other
roles of GKE include permissions on objects of every cluster, which no role binding could revoke."""


class GcpMembersArgs(TypedDict):
    """Members with access to clusters."""

    project: str
    """Id of the project."""
    members: Sequence[str]
    """`user:` or `group:` and an e-mail address in lower case."""
    own_bindings: NotRequired[str]
    """Title of bindings that no other stack has (`components.gcp.iam.on_project`), for several stacks of one
    project with the same members. Default: bindings without a condition."""


class GcpMembers(Component):
    """The permission to connect to clusters of the project; role bindings grant the rest.

    It covers every cluster of the project, because no source states that conditions on one apply to
    connections: in a cluster without role bindings, members have no permissions. All teams are in one
    component: a member who changes teams keeps the permission. Raises UserError for members of another form.
    *Untested in a real project.*
    """

    def __init__(self, name: str, args: GcpMembersArgs, opts: Options = None) -> None:
        super().__init__(name, opts)
        if problems := list(member_problems(f"{name}.members", args["members"])):
            raise UserError(problems)
        own = args.get("own_bindings")
        for member in args["members"]:
            iam.on_project(self, f"{name}-{_short(member)}", args["project"], ROLE, member, own)
        self.register_declared()


def _short(member: str) -> str:
    """A name for resources: two addresses that differ in a dot have two."""
    return f"{sanitize(member, max_length=40)}-{hashlib.sha256(member.encode()).hexdigest()[:6]}"


def subject(member: str) -> SubjectArgs:
    """A member as a subject of the API server of a GKE cluster: by the e-mail address.

    A service account of Google Cloud is a user there. A group is recognized only where the cluster has
    `authenticatorGroupsConfig`, and the group is below the `gke-security-groups` of its domain. Source: GKE
    documentation, "Authorize actions in clusters using RBAC" and "Configure Google Groups for RBAC".
    """
    kind, _, email = member.partition(":")
    return group(email) if kind == "group" else user(email)
